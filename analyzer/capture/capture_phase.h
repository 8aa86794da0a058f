/*
 * capture_phase.h - what was held at the highest peak of the phases before this one?
 *
 * Context     once all of the capture was read.
 * When failing  the peaks are those of the phase, and a line in the capture's `damages` says so.
 */
#ifndef CAPTURE_PHASE_H
#define CAPTURE_PHASE_H

#include "capture/capture.h"
#include "kmem_format.h"

/*
 * The record that keeps it, whole; NULL: no phase was begun, or it cannot be read. is_written: the program runs, and may be writing it anew, so
 * that it is no damage when it does not fit.
 */
const struct kmem_kept_peak *capture_kept_peak(struct capture *capture, bool is_written);

/*
 * Where that peak is the higher one, makes it that of the domain and of its sites: from then on peaks are those of the process's whole life. In a
 * private copy, as capture_exit.c does it, so that nobody else needs to know of phases.
 */
void capture_phase_join(struct capture *capture, bool is_written);

#endif
