/*
 * version.h - which kmemshim is this? The Makefile and the packages read it here.
 */
#ifndef VERSION_H
#define VERSION_H

#define KMEMSHIM_VERSION_TEXT "0.9.0"

/* In the library's file in front of its version: who finds another installation's library reads there which it is. */
#define KMEMSHIM_VERSION_MARK "libkmemshim.so is version "

#endif
