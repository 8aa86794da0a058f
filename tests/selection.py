"""Which whole-program tests are for make check, and which are for make test-long? By the start of their names, each with its reason.

conftest.py gives them the markers. Tests that are long whatever is asked have the marker `long` where they stand.
"""

# Interpreters between the oldest and the newest: 3.9 has the offsets and the allocator of 3.8, and the system's Python is 3.11.
MIDDLE = r"\[(system-)?3\.(9|10|11|12)\b"

# Of test_objects.py and test_object_samples.py: those that run for every interpreter.
EVERY_OBJECT = r"(every_object_is_counted_once|kinds_of_objects|the_same_in_special_cases|state_before_teardown_is_kept|wrappers_that_were_thrown_out|a_leak_of_small_objects\w*|arenas_are_not_counted\w*)"
EVERY_SAMPLE = r"(each_line_has_its_bytes|an_estimate_is_unbiased|what_malloc_sees_is_not_sampled|the_same_in_special_cases|under_tracemalloc_from_the_beginning)"

LONG = {
    r"preload/test_suites\.py::.*\[(test_threading|test_mem_overlap\.py)\]": "28 and 12 s; the other suites see the same hooks",
    r"preload/test_suites\.py::.*\[test_gc\]": "7 s; test_mmap stays, and the collector runs in every test of tests/python",
    r"preload/test_real_programs\.py::test_the_same_output\[(redis|node|perl)\]": "14, 4 and 7 s; sqlite stays; make real-programs runs all",
    r"preload/test_code_identity\.py::test_twenty_thousand_functions.*\[3\.8-4\]": "20 s; the newest interpreter stays",
    r"preload/test_code_identity\.py::test_functions_of_several_interpreters" + MIDDLE: "3 s each",
    r"preload/test_user_code\.py::test_where_is_the_innermost_frame_of_the_users" + MIDDLE: "6 s each",
    r"preload/test_user_code\.py::test_ways_to_start\[3\.8-": "2 s each; the newest interpreter stays",
    r"preload/test_holders\.py::test_(H1_H2_the_way|shares_of_holders)\w*\[(\w+\.py-)?3\.(9|10|11|12)\]": "0.4 s each, 60 of them; the system's Python is 3.11, 3.8 has the frames of 3.9 and 3.10, 3.13 those of 3.12",
    r"preload/test_holders\.py::test_who_holds_it_is_who_refers_to_it_for_the_collector\[3\.(8|9|10|11|12)-": "0.5 s each, 25 of them; the system's Python and the newest stay",
    r"preload/test_holders\.py::test_members_of_what_stands_in_nodes\w*\[[12]-.*(dwarf-4|types-section|ABI=0)": "2 s each; the first part has these forms of debug information, test_members_of_cpp_have_names has them too",
    r"preload/test_holders\.py::test_members_of_what_stands_in_nodes\w*\[0-.*(dwarf-4|types-section)": "2.5 s each; test_members_of_cpp_have_names has these forms",
    r"preload/test_holders\.py::test_members_of_cpp_have_names\[objects-(.*types-section|-gdwarf-4)": "1 s each; the cache has these forms",
    r"preload/test_holders\.py::test_local_variables_of_cpp\w*\[(g\+\+-Og|clang\+\+-O0)\]": "1 s each; optimised and not optimised code of both compilers stays",
    r"preload/test_foreign\.py::test_no_small_block_is_lost\[(mimalloc|tcmalloc)-1200000-": "1.5 s each; the densest stays, and all of jemalloc and of our own allocator",
    r"preload/test_strange_names\.py::.*\[3\.(8|9|10|11|12)\b": "4 to 6 s each; names are the analyzer's, the newest interpreter stays",
    r"preload/test_cells\.py::test_cells_have_numbers_and_texts_on_every_interpreter" + MIDDLE: "3 s each",
    r"preload/test_training\.py::test_killed_training_names_the_line\[.*-[12]\]": "5 s each; one moment of death of each script stays",
    r"preload/test_python_only\.py::test_a_line_with_thousands_of_ways_keeps_the_first\[verify\]": "8 s; the same without verifying stays",
    r"preload/test_mutation\.py::test_damage_in_the_capture_of_a_killed_python": "11 s; make mutate damages every byte",
    r"python/test_matrix\.py::.*" + MIDDLE: "10 s each",
    r"python/test_matrix\.py::test_every_line_is_right\[3\.8\]": "8 s; test_frames.py has 3.8 too",
    r"python/test_frames\.py::test_frames_are_the_interpreters_own" + MIDDLE: "4 s each",
    r"python/test_frames\.py::test_other_allocators\[3\.(9|10|11)\]": "1 to 2 s each; 3.8, 3.12 and 3.13 have one of the three allocators each",
    r"python/test_objects\.py::test_" + EVERY_OBJECT + r"\w*" + MIDDLE + r"(?!-kill)": "0.5 to 3 s each, 50 of them; 3.8 has the allocator of 3.9 and 3.10, 3.13 that of 3.12, the system's Python is 3.11",
    r"python/test_objects\.py::test_(every_object_is_counted_once|kinds_of_objects)\w*\[(system|3\.13)-pymalloc": "1 to 2 s each; other names of the usual allocator and of debug, which stay; 3.8 has these too",
    r"python/test_object_samples\.py::test_" + EVERY_SAMPLE + r"\w*" + MIDDLE: "1 s each, 60 of them; as above, and samples do not depend on how an interpreter keeps its arenas",
    r"python/test_object_samples\.py::test_each_line_has_its_bytes\[(system|3\.13)-pymalloc": "0.9 s each; as above",
    r"python/test_object_samples\.py::test_(names_in_the_cache|values_that_the_cache)\w*" + MIDDLE: "1 to 2 s each, 16 of them; as above",
    r"python/test_object_samples\.py::test_the_same_in_a_program_that_embeds_python" + MIDDLE: "1 to 2 s each, 16 of them; as above",
    r"python/test_copied_objects\.py::.*\[3\.(9|10|11|12-(?!interned))": "0.9 s each, 15 of them; the oldest and the newest stay, and 3.12's interned strings, which are counted no more there",
    r"python/test_threads\.py::test_(a_pool_allocates|a_pool_that_runs|threads_have_lines|a_subinterpreters|what_a_pool_does|a_forked_childs|the_state_before|lines_that_do_not_wait|a_thread_of_ours|a_pools_own_line|a_librarys_callback)\w*" + MIDDLE: "0.5 to 1 s each; as above",
    r"python/test_threads\.py::test_(an_embedded_interpreter|a_program_that_goes_on\w*)\[(\w+-)?3\.(9|10|11|12)\b": "1 s each; as above",
    r"python/test_hostile\.py::test_hostile_code_objects" + MIDDLE: "2 s each",
    r"preload/test_doc_sessions\.py::test_the_verdict_of_the_readme": "9 s; the sessions of the other pages stay",
    r"packaging/test_deb\.py::test_(two_builds|lintian)": "13 and 8 s; the wheel is made twice in make test",
}

QUICK = {
    # the hooks, family by family
    r"preload/test_accounting\.py::test_what_is_kept\[(malloc|calloc|realloc|reallocarray|posix_memalign|aligned_alloc|memalign|strdup|getline|new_\w*)\]": "malloc and its kin",
    r"preload/test_accounting\.py::test_what_made_the_peak": "peaks",
    r"preload/test_conservation\.py::test_(single_threaded_program_is_exact|threads_that_free_each_others_blocks)": "sums are exact",
    r"preload/test_mappings\.py::test_live_mappings_are_exact": "mmap, munmap, mremap, shared memory, brk",
    r"preload/test_mappings\.py::test_what_madvise_gave_back": "madvise",
    r"preload/test_self_measurement\.py::test_(a_loop|a_walk|counts|a_child|the_page)": "what recording did",
    r"preload/test_operator_new\.py::test_(python_opens_it\[None\]|there_is_no_c_plus_plus)": "operator new",
    r"preload/test_processes\.py::test_(children_are_told_however|a_child_may_free|an_image_that_is_replaced|a_daemon_that)": "fork, exec, exit",
    r"preload/test_threads_and_stacks\.py::test_(what_destructors_of_threads|stacks_of_four_kib|an_allocation_under)": "threads",
    r"preload/test_left_hooks\.py": "longjmp and signals out of hooks",
    r"preload/test_transparency\.py::test_(results_errno|pipelines|run_returns_the_status_of|a_constructor_may)": "the program is as without us",
    r"preload/test_memlock\.py": "mlockall",
    r"preload/test_plugins\.py::test_(code_at_the_same_address|what_a_librarys_constructor)": "dlopen, dlclose",
    r"preload/test_ends\.py::test_(static_objects|the_peak_may_be_in)": "exit handlers",
    r"preload/test_foreign\.py::test_(plugin_goes_past_us|blocks_of_libc)": "allocators that are not ours",
    r"fault/test_confined\.py::test_a_program_that_confines_itself": "sandboxes: seccomp, chroot, setuid",
    r"fault/test_faults\.py::test_(faults_reach_the_shim|a_fault_that_never_happens)": "system calls that fail",
    r"fault/test_truncated\.py": "a capture that is cut short",
    r"python/test_frames\.py::test_(switched_off|programs_without_python|other_allocators\[3\.13(?!t))": "Python's frames",
    r"python/test_objects\.py::test_(kinds_of_objects|the_same_in_special_cases).*3\.13(?!t)": "Python's objects",
    r"python/test_python_ends\.py::test_in_every_interpreter.*3\.13(?!t)": "Python's end",
    r"cuda/test_cuda\.py::test_(failures_change_no_books|late_destructors|dlsym_keeps)": "CUDA",
    r"cuda/test_gpu_check\.py::test_(all_that_needs_no_device|a_sum_that_is_wrong_is_told\[cudaMalloc\])": "the check for a machine with a device",
    r"cuda/test_hip\.py": "HIP",
    r"cuda/test_tensors\.py::test_(tensors_are_what|a_device_that_is_full_of_pieces)": "PyTorch's tensors",
    # what is read and said
    r"preload/test_examples\.py::test_every_command_prints": "every command, text and JSON",
    r"preload/test_annotate\.py::test_(figures_beside|a_file_that_is_not)": "kmemshim annotate",
    r"preload/test_groups\.py::test_groups_add_up\w*\[(package|thread)-peak": "--by",
    r"preload/test_waste\.py::test_lines_that": "kmemshim waste",
    r"preload/test_gate\.py::test_a_(leak_fails|larger_peak_fails)": "kmemshim check",
    r"preload/test_bad_input\.py::test_(a_file_that_is_not_a_capture|a_bad_setting)": "bad input",
    r"preload/test_holders\.py::test_(H1_H2_the_way\w*\[(closure|local_of_main)\.py-system\]|blocks_of_c)": "kmemshim holders",
    r"preload/test_doctor\.py::test_(all_is_well|limits)": "kmemshim doctor",
    r"preload/test_leak_classes\.py::test_(both_kinds|few_large_blocks)": "leak classes",
    r"preload/test_places\.py::test_(few_callers|a_program_is_named)": "which line is named",
    r"preload/test_symbols\.py::test_sources_are_named": "native names",
    r"preload/test_kills\.py::test_what_a_killed_program_leaves_is_right": "what a killed program leaves",
    r"preload/test_fragmentation\.py::test_of_several": "freed memory",
    r"preload/test_private\.py::test_(secrets|a_program_that)": "private captures",
}
