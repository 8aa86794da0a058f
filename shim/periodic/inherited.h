/*
 * inherited.h - what did this process inherit at fork, and how much of that has it copied?
 *
 * After fork parent and child share their pages until one of them writes. A child that only reads may write all the same: looking at a
 * Python object changes its reference count. What a child copied is in no figure of any allocation.
 *
 * copied bytes = private memory that no other process has, no more than it had page faults, less those of the recorder's tables and less the
 * highest live bytes that it ever had of its own: at least so much is copied. Pages are also shared by fewer processes when the parent
 * ends or unmaps them: that is no copy and makes no fault in the child. When the parent is gone the child does not look any more.
 *
 * Small Python objects by line: the child remembers where the parent's samples lie (16,384 at most) that belong to the largest records
 * and are objects. Such a sample counts as copied when its page is the child's alone. It shares that page with other blocks of malloc's,
 * up to seven samples, and any of them may have been written to: so a line may get bytes of another line, and a reader takes no more for
 * all lines together than was copied in all.
 *
 * Safe from   any hook; no allocation. A look asks for all private pages, in pieces (page_look.h), and for one word of
 *             /proc/self/pagemap for each sample. It is begun when page faults say that a quarter more may have been copied than at the
 *             last one, and takes a 64th of the time at most; at the end it is made at once.
 * When failing  no page map (no /proc, a process that nobody may trace, before Linux 4.2): no figure.
 */
#ifndef INHERITED_H
#define INHERITED_H

#include <stdbool.h>
#include <stdint.h>

#include "sites/site_table.h"

/* What this process holds now. Sums that cannot be right, even with what threads hold back, are replaced. */
void inherited_totals_now(struct site_totals now_totals[KMEM_DOMAINS_MAX]);

void inherited_gather(void);        // in the parent, before fork
void inherited_forked_parent(void); // in the parent, after it

/* In the child, while the parent's capture is still mapped. Also does the parent's part where fork ran no handlers (a direct call). */
void inherited_forked_child(void);
void inherited_store(void); // into the child's new capture

/* Looks when it is time to. Does nothing in a process that was not forked. Returns when the look goes on; UINT64_MAX: it does not. */
uint64_t inherited_sample(bool is_end);

/* Of the last look. */
uint64_t inherited_copied_bytes(void);

/* The highest live bytes this process ever had, all domains together: an upper bound, apart from what threads hold back. */
uint64_t inherited_own_peak_bytes(void);

#endif
