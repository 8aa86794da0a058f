# Tests of C and C++ with limits of memory. Copy this file beside your CMakeLists.txt and include it:
#
#   include(Kmemshim.cmake)
#   kmemshim_add_test(NAME ring COMMAND ring_test PEAK "2 MiB" LIVE "16 KiB" PER_STEP "1 KiB")
#
# The test runs its command below `kmemshim check` and fails when the command fails, or holds more than one of these:
#   PEAK      at most, at any moment
#   LIVE      at the end
#   PER_STEP  in each step, by lines that grow: what it counts by kmemshim_step() of kmemshim.h; else rounds of its loop, an estimate
# Captures stay in the folder kmemshim/ of the build: `kmemshim report` reads them. Without the command kmemshim it is an ordinary test,
# and cmake says so. A run without enough steps to judge PER_STEP is skipped.
find_program(KMEMSHIM kmemshim DOC "the command kmemshim")
find_path(KMEMSHIM_INCLUDE kmemshim.h DOC "the folder of kmemshim.h")
if(NOT KMEMSHIM)
  message(STATUS "kmemshim: not found; tests run without limits of memory (-DKMEMSHIM=PATH)")
endif()

function(kmemshim_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 test "" "NAME;PEAK;LIVE;PER_STEP" "COMMAND")
  if(NOT test_NAME OR NOT test_COMMAND OR test_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kmemshim_add_test: wanted NAME and COMMAND, and of PEAK, LIVE, PER_STEP some; "
                        "not understood: ${test_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT KMEMSHIM)
    add_test(NAME ${test_NAME} COMMAND ${test_COMMAND})
    return()
  endif()

  set(budgets "")
  foreach(kind PEAK LIVE PER_STEP)
    if(test_${kind})
      string(TOLOWER ${kind} name)
      string(APPEND budgets "    ${name}: ${test_${kind}}\n")
    endif()
  endforeach()
  if(budgets STREQUAL "")
    message(FATAL_ERROR "kmemshim_add_test: ${test_NAME} has no limit: PEAK, LIVE or PER_STEP")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/kmemshim/${test_NAME})
  file(WRITE ${folder}/budgets.yml "budgets:\n  total:\n${budgets}run:\n  too_short: skip\n")

  # add_test() knows programs of this project by name only where they stand first: not behind another command.
  list(GET test_COMMAND 0 program)
  if(TARGET ${program})
    list(REMOVE_AT test_COMMAND 0)
    set(program $<TARGET_FILE:${program}>)
  else()
    list(REMOVE_AT test_COMMAND 0)
  endif()
  add_test(NAME ${test_NAME} COMMAND ${KMEMSHIM} check --config ${folder}/budgets.yml -o ${folder}/captures
                                     -- ${program} ${test_COMMAND})
  set_tests_properties(${test_NAME} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
