/*
 * launcher_sign.h - how a program ended, written into its capture.
 */
#ifndef LAUNCHER_SIGN_H
#define LAUNCHER_SIGN_H

#include "launch/launcher.h"

/*
 * Into the newest of its images: struct kmem_launcher.
 *
 * path  out: of the capture, PATH_MAX bytes; "" when there is none
 */
void launcher_sign(const struct launch *launch, char *path);

#endif
