/*
 * version.h - which kmemshim is this? The Makefile and the packages read it here.
 */
#ifndef VERSION_H
#define VERSION_H

#define KMEMSHIM_VERSION_TEXT "0.1.0"

#endif
