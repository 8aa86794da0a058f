/*
 * report_names.c - which word stands for a number in the report, and what does it mean?
 *
 * Guards, steps and marks have theirs in report_guard.c and report_steps.c.
 */
#include "base/items.h"
#include "report/report.h"

struct loss {
	const char *one;  // what it means, behind a number; NULL: as `many`
	const char *many; // NULL: a number that has no meaning in this version
	bool is_serious;
};

static const struct loss losses[KMEM_LOSS_COUNT] = {
	[KMEM_LOST_EVENTS] = { "allocation not recorded: no room", "allocations not recorded: no room", true },
	[KMEM_LOST_EVENT_BYTES] = { NULL, "in allocations that were not recorded", true },
	[KMEM_LOST_SITES] = { "allocation counted at a caller or without a stack: no room for more stacks",
	                      "allocations counted at a caller or without a stack: no room for more stacks", true },
	[KMEM_LOST_STACKS] = { "allocation whose stack could not be taken", "allocations whose stack could not be taken",
	                       true },
	[KMEM_LOST_UNKNOWN_FREES] = { "release of an unknown block (from before the recording, or of another allocator)",
	                              "releases of unknown blocks (from before the recording, or of another allocator)",
	                              false },
	[KMEM_LOST_MISSED_FREES] = { "block used again without a recorded release",
	                             "blocks used again without a recorded release", false },
	[KMEM_LOST_REENTRANT] = { "allocation made inside the recorder (by a signal handler)",
	                          "allocations made inside the recorder (by signal handlers)", true },
	[KMEM_LOST_UNWINDS] = { "native stack that ends before the outermost frame",
	                        "native stacks that end before the outermost frame", false },
	[KMEM_LOST_PYTHON_FRAMES] = { "Python frame that failed a check", "Python frames that failed a check", true },
	[KMEM_LOST_PYTHON_TEXT] = { "time there was no room for the name or lines of a Python function",
	                            "times there was no room for the name or lines of a Python function", true },
	[KMEM_LOST_MODULES] = { "shared object that could not be described", "shared objects that could not be described",
	                        true },
	[KMEM_LOST_TEARDOWN_EVENTS] = { "event after Python began to shut down: left out",
	                                "events after Python began to shut down, mostly releases: left out", false },
	[KMEM_LOST_GROWTH] = { "time the capture could not grow", "times the capture could not grow", true },
	[KMEM_LOST_FALLBACK_UNWINDS] = { "stack that needed the slow unwinder", "stacks that needed the slow unwinder",
	                                 false },
	[KMEM_LOST_INHERITED_FREES] = { "inherited block released by a forked child: in no figure",
	                                "inherited blocks released by forked children: in no figure", false },
	[KMEM_LOST_CONTEXTS] = { "device context beyond the 64 that can be told apart: its memory seems live after its end",
	                         "device contexts beyond the 64 that can be told apart: their memory seems live after their end",
	                         true },
	[KMEM_LOST_NATIVE_PATHS] = { "Python line with thousands of native stacks: its further small blocks have no native frames",
	                             "Python lines with thousands of native stacks: their further small blocks have no native frames",
	                             false },
};

const char *
report_loss_meaning(unsigned loss, uint64_t count)
{
	return count == 1 && losses[loss].one != NULL ? losses[loss].one : losses[loss].many;
}

NAMES_OF(report_state_name, [REPORT_STARTING] = "starting", [REPORT_RUNNING] = "running", [REPORT_EXITED] = "exited",
         [REPORT_EXEC_REPLACED] = "exec-replaced", [REPORT_SIGNAL] = "signal", [REPORT_GONE] = "gone",
         [REPORT_UNKNOWN] = "unknown")

const char *
report_place_text(const struct report_place *where, char text[PLACE_TEXT_BYTES])
{
	(void)place_text(where->file, where->line, where->function, where->module, where->offset, text);
	return place_related(model_relation_name(where->relation), text);
}

bool
report_has_losses(const struct report *report, bool is_serious)
{
	for (unsigned i = 0; i < KMEM_LOSS_COUNT; i++) {
		if (losses[i].many != NULL && report->losses[i] != 0 && losses[i].is_serious == is_serious)
			return true;
	}
	return false;
}

bool
report_loss_is_serious(unsigned loss)
{
	return losses[loss].is_serious;
}

const char *
report_relation(unsigned number)
{
	return number != MODEL_RELATION_OWN ? model_relation_name(number) : NULL;
}

static const struct resident_part {
	const char *name;
	const char *meaning;
} resident_parts[KMEM_RESIDENT_PARTS] = {
	[KMEM_RESIDENT_OTHER] = { "not attributed", "mapped by direct system calls or by libraries" },
	[KMEM_RESIDENT_BRK] = { "brk", "malloc, below the program break" },
	[KMEM_RESIDENT_HEAP] = { "heap", "malloc's mappings, with their free parts" },
	[KMEM_RESIDENT_MMAP] = { "mmap", "" },
	[KMEM_RESIDENT_RESERVED] = { "reserved", "" },
	[KMEM_RESIDENT_PYTHON_ARENA] = { "python/arena", "" },
	[KMEM_RESIDENT_SHARED] = { "shared", "" },
	[KMEM_RESIDENT_FILE] = { "file", "" },
	[KMEM_RESIDENT_PROGRAM] = { "program", "and its libraries, code and data" },
	[KMEM_RESIDENT_STACKS] = { "stacks", "of all threads" },
	[KMEM_RESIDENT_OWN] = { "kmemshim", "used by the recorder" },
	[KMEM_RESIDENT_INHERITED] = { "inherited", "from before the fork" },
};

const char *
report_resident_name(unsigned part)
{
	return part < KMEM_RESIDENT_PARTS ? resident_parts[part].name : NULL;
}

const char *
report_resident_meaning(unsigned part)
{
	return resident_parts[part].meaning;
}

NAMES_OF(report_own_name, [KMEM_OWN_OTHER] = "library", [KMEM_OWN_ADDRESSES] = "addresses", [KMEM_OWN_SITES] = "sites",
         [KMEM_OWN_STACKS] = "stack rules", [KMEM_OWN_THREADS] = "threads", [KMEM_OWN_CAPTURE] = "capture")

/* as enum line_pace */
NAMES_OF(report_line_pace, "even", "faster", "bursts")

/* as enum report_lost, of which the last has none */
NAMES_OF(report_lost_name, "no-room", "no-stack", "unfinished")
