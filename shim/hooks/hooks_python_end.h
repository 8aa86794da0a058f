/*
 * hooks_python_end.h - has the program's own Python code ended?
 *
 * Handlers of atexit, and those of threading and concurrent.futures, run before the interpreter says that it finalises. They clear caches
 * and histories that were held all along. What runs right before them is the module that was started as the program: its code
 * object dies when it is done, with no frame left, inside the function that runs programs.
 *
 * Safe from   any thread, outside any hook.
 * When failing  figures are those of the moment when finalisation begins: where something keeps the code object (an error that was not
 *             caught stays in sys.last_traceback), in an interactive session, and in a program that embeds Python.
 */
#ifndef HOOKS_PYTHON_END_H
#define HOOKS_PYTHON_END_H

/* Once, before there are code objects that die. `on_end` is called when the code has ended, outside the reentry guard. */
void hooks_python_end_start(void (*on_end)(void));

#endif
