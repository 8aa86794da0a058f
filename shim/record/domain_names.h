/*
 * domain_names.h - what each domain of memory is called in the capture.
 *
 * Context     once for each capture. No allocation.
 */
#ifndef DOMAIN_NAMES_H
#define DOMAIN_NAMES_H

void domain_names_store(void);

#endif
