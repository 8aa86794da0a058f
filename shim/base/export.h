/*
 * export.h - a name that the program sees; everything else in the shim is hidden.
 */
#ifndef EXPORT_H
#define EXPORT_H

#define EXPORT __attribute__((visibility("default")))

/* Called by name from assembly. */
#define ASSEMBLY_CALLS __attribute__((visibility("hidden"), used))

#endif
