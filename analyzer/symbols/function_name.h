/*
 * function_name.h - what is this function called, for a person?
 *
 * Safe from   one thread.
 */
#ifndef FUNCTION_NAME_H
#define FUNCTION_NAME_H

/*
 * The readable name of a symbol: demangled (C++, Rust v0 and legacy) without arguments, without version ("@GLIBC_2.2.5")
 * and without what compilers append to copies and parts of a function (".part.0", " [clone .cold]"). The caller frees it.
 */
char *function_name_readable(const char *symbol);

#endif
