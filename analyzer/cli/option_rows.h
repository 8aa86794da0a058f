/*
 * option_rows.h - which options are there? One row for each, in the order of the help.
 *
 * options.c has the rows in a table, command.h a number for each, options.h a member of struct options.
 */
#ifndef OPTION_ROWS_H
#define OPTION_ROWS_H

/*
 * FLAG(number, name, letter, member of struct options, help)
 * WITH(number, name, letter, kind of option_kind, member, value in the help, what is wanted in the message about a bad value, help)
 *
 * letter: 0 = none
 */
#define OPTION_ROWS(FLAG, WITH)                                                                                       \
	FLAG(HELP, "help", 'h', wants_help, "print this help")                                                            \
	FLAG(JSON, "json", 0, is_json, "print JSON, all rows unless --top is given (see kmemshim schema)")                \
	WITH(TOP, "top", 0, COUNT, top, "N", "a number of rows (0 or more)", "show N lines of code (default 10)")         \
	WITH(DOMAIN, "domain", 0, TEXT, domain, "D", "a domain",                                                          \
	     "only this domain: heap, mmap, cuda:0, cuda (all devices), ...")                                             \
	FLAG(NATIVE, "native", 0, is_native, "show native frames in stacks too")                                          \
	FLAG(SALVAGE, "salvage", 0, is_salvage, "read the intact parts of a damaged capture")                             \
	WITH(SYSROOT, "sysroot", 0, TEXT, sysroot, "DIR", "a folder", "look for programs and libraries below DIR")        \
	WITH(PROJECT, "project", 0, TEXT, project, "DIR", "a folder", "treat only code below DIR as your own")            \
	WITH(WRAPPERS, "wrappers", 0, TEXT, wrappers, "NAMES", "names of functions, separated by commas",                 \
	     "functions that pass memory on: report their callers (also KMEMSHIM_WRAPPERS)")                              \
	WITH(OUTPUT, "output", 'o', PATH, output, "PATH", "a path (write ./-NAME if it begins with -)", "where to write") \
	WITH(HTML, "html", 0, PATH, html, "FILE", "a path (write ./-NAME if it begins with -)",                           \
	     "write a page for a browser to FILE: flame graph, lines, timeline, source")                                  \
	FLAG(NO_SOURCE, "no-source", 0, has_no_source, "leave source text out of the page")                               \
	WITH(VALUE, "value", 0, TEXT, value, "V", "peak, live, leaked or allocated",                                      \
	     "what stacks are given: peak (default), live, leaked, allocated")                                            \
	FLAG(QUIET, "quiet", 'q', is_quiet, "print nothing when CMD has ended")                                           \
	WITH(COLOR, "color", 0, COLOR, color, "WHEN", TERMINAL_COLORS,                                                    \
	     "colours: auto (default: on a terminal, unless NO_COLOR is set), always or never")                           \
	FLAG(PYTHON_OBJECTS, "python-objects", 0, wants_python_objects,                                                   \
	     "record each small Python object, not a sample of them")                                                     \
	WITH(SAMPLE, "sample", 0, SAMPLE, sample, "SIZE", KMEM_SAMPLE_WANTED,                                             \
	     "record one block of the heap for SIZE bytes on average, at nearly no cost")                                 \
	FLAG(SYSTEM_ALLOCATORS, "system-allocators", 0, wants_system_allocators,                                          \
	     "make libraries with an allocator of their own use malloc, where they can")                                  \
	WITH(BASELINE, "baseline", 0, TEXT, baseline, "FILE", "a file", "compare with FILE")                              \
	WITH(ABSOLUTE, "abs", 0, SIZE, absolute_bytes, "SIZE", "a size such as 1MiB",                                     \
	     "allowed growth in bytes (default: as the baseline's runs vary; of fewer than three runs 1MiB)")             \
	WITH(RELATIVE, "rel", 0, PERCENT, relative_ppm, "PCT", "a percentage such as 5%",                                 \
	     "allowed growth in percent (default: the same, or 5%); the larger allowance wins")                           \
	WITH(FORMAT, "format", 0, TEXT, formats, "LIST", "formats",                                                       \
	     "text (default), junit, markdown, github, github-summary, gitlab, sarif; NAME=FILE; several with commas")    \
	WITH(RUNS, "runs", 0, RUNS, runs, "N", "a number of runs (1 or more), or all",                                    \
	     "use the newest N sessions of each folder, or all")                                                          \
	WITH(PROGRAM, "program", 0, TEXT, program, "NAME", "a program's name",                                            \
	     "accept runs of NAME (* and ? are wildcards), or of any program")                                            \
	FLAG(KERNEL, "kernel", 0, is_kernel,                                                                              \
	     "read the newest notebook kernel; if it died and was restarted, the run that died")                          \
	WITH(KEEP, "keep", 0, KEEP, keep, "N", "a number of 1 or more",                                                   \
	     "keep the captures of the newest N kernels (default 10)")                                                    \
	WITH(WRAP, "wrap", 0, TEXT, wrap, "KERNEL", "a kernel's name",                                                    \
	     "the kernel to record (default python3; jupyter kernelspec list shows all)")                                 \
	WITH(NAME, "name", 0, TEXT, name, "NAME", "a name", "of the new kernel (default KERNEL-kmemshim)")                \
	FLAG(USER, "user", 0, is_for_user, "install for you alone (default)")                                             \
	FLAG(SYS_PREFIX, "sys-prefix", 0, is_in_environment, "install into the active Python environment")                \
	WITH(PREFIX, "prefix", 0, PATH, prefix, "DIR", "a folder", "install into DIR/share/jupyter")                      \
	FLAG(FORCE, "force", 0, is_forced, "also over a kernel that kmemshim did not write")                              \
	FLAG(NO_GUARD, "no-guard", 0, has_no_guard, "install without a guard")                                            \
	FLAG(REMOVE, "remove", 0, is_removed, "remove it, where its programs have ended")                                 \
	WITH(GUARD, "guard", 0, GUARD, guard, "SIZE", KMEM_GUARD_WANTED,                                                  \
	     "guard the limit: act when SIZE is in use, such as 90% of it, or 12G")                                       \
	WITH(GUARD_ACTION, "guard-action", 0, GUARD_ACTION, guard_action, "ACTION", KMEM_GUARD_ACTION_WANTED,             \
	     "what happens then: note (default), interrupt, raise, exec:CMD")                                             \
	WITH(BY, "by", 0, TEXT, by, "WHAT", "what a row is", "a row is a line (default), or a function")                  \
	FLAG(MARKDOWN, "markdown", 0, is_markdown, "print Markdown, for a comment on a change")                           \
	WITH(SNAPSHOTS, "snapshots", 0, SNAPSHOTS, snapshots, "N", "a number from 2 to 32",                               \
	     "keep what each line holds at N moments, at even distances")                                                 \
	WITH(AT, "at", 0, TEXT, at, "SNAPSHOT", "a snapshot's name, or #NUMBER",                                          \
	     "show what was live at this snapshot (report lists them)")                                                   \
	WITH(SINCE, "since", 0, TEXT, since, "SNAPSHOT", "a snapshot's name, or #NUMBER",                                 \
	     "take off what each line held at this snapshot")                                                             \
	FLAG(PHASE, "phase", 0, is_of_phase, "peaks of the phase that the program began last, not of its whole life")     \
	FLAG(ALL, "all", 0, has_all, "leave nothing out")                                                                 \
	WITH(CONFIG, "config", 0, PATH, config, "FILE", "a path (write ./-NAME if it begins with -)",                     \
	     "budgets and suppressions (default: .kmemshim.yml, where it is there)")                                      \
	FLAG(INIT, "init", 0, wants_init, "write such a file, with comments, and end")                                    \
	FLAG(ONCE, "once", 0, is_once, "print the first screen as text, and end")                                         \
	FLAG(AT_EXIT, "at-exit", 0, is_at_exit, "run CMD, and look when it is about to end")                              \
	WITH(CORE, "core", 0, PATH, core, "FILE", "a path (write ./-NAME if it begins with -)",                           \
	     "look into this core of the process that CAPTURE is of")                                                     \
	WITH(STATUS_FOR, "status-for", 0, TEXT, status_for, "WHO", "git-bisect or automake",                              \
	     "end with the status that git-bisect (125 = skip) or automake (77) wants")                                   \
	FLAG(PLATFORM, "any-platform", 0, is_any_platform, "also compare with a baseline of another platform")            \
	WITH(RETRIES, "retries", 0, COUNT, retries, "N", "a number",                                                      \
	     "with -- CMD: try a failed check N times again, with more runs (default 3)")                                 \
	WITH(STOP, "stop", 0, TIME, stop_ns, "TIME", "a time such as 500ms or 2s",                                        \
	     "let the program stand still for at most so long (default 1s)")                                              \
	WITH(HOLDERS_STOP, "holders-stop", 0, TIME, holders_stop_ns, "TIME", "a time such as 500ms or 2s",                \
	     "let it stand still at most so long when it is looked at (default 1s; 3s where a line grows)")               \
	FLAG(NO_HOLDERS, "no-holders", 0, has_no_holders, "do not find out what holds the memory")                        \
	WITH(ROUNDS, "rounds", 0, KEEP, rounds, "N", "a number of 1 or more",                                             \
	     "what {n} stands for in CMD (default 100); a line fails when four times as many keep more")

#endif
