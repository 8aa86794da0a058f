/*
 * kernels.h - which kernels does Jupyter know here? Asked of Python, which kernels.py is handed to.
 *
 * When failing  one line in `fail` (EXIT_USAGE).
 */
#ifndef KERNELS_H
#define KERNELS_H

#include "base/fail.h"
#include "base/json_read.h"

/*
 * request   what kernels.py takes; is freed. NULL = a text in it is not UTF-8
 * returns   its answer, to be freed by json_decref(); NULL and *fail where it refused, or there is no Python
 */
json_t *kernels_ask(json_t *request, struct fail *fail);

#endif
