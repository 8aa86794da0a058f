# find_package(kmemshim) gives
#
#   kmemshim::kmemshim   to link with: the folder of kmemshim.h, and no library
#   kmemshim_add_test()  a test with limits of memory: see Kmemshim.cmake beside this file
get_filename_component(_kmemshim_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET kmemshim::kmemshim)
  add_library(kmemshim::kmemshim INTERFACE IMPORTED)
  set_target_properties(kmemshim::kmemshim PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_kmemshim_prefix}/include"
                                                      INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
endif()
find_program(KMEMSHIM kmemshim HINTS "${_kmemshim_prefix}/bin" DOC "the command kmemshim")
set(KMEMSHIM_INCLUDE "${_kmemshim_prefix}/include" CACHE PATH "the folder of kmemshim.h")
unset(_kmemshim_prefix)
include("${CMAKE_CURRENT_LIST_DIR}/Kmemshim.cmake")
