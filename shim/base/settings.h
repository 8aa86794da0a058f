/*
 * settings.h - one table of KMEMSHIM_* variables, parsed once when the shim starts. KMEMSHIM_LOG is diag_level, in diag.h.
 *
 * Context     Constant after the start.
 * Bad values  one message that names the variable, and the default.
 */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"
#include "kmem_words.h"

enum settings_choice { SETTINGS_AUTO, SETTINGS_OFF, SETTINGS_ON };
enum settings_native {
	SETTINGS_NATIVE_AUTO,      // where a site holds much, to the innermost evaluator; else hardly any (event_site.h)
	SETTINGS_NATIVE_TO_PYTHON, // always to the innermost evaluator
	SETTINGS_NATIVE_ALL,       // below it too
};

struct settings {
	const char *out;      // KMEMSHIM_OUT: folder for captures; NULL = ./kmemshim.out
	const char *wrappers; // KMEMSHIM_WRAPPERS: for who reads the capture, nothing to us
	const char *session;  // KMEMSHIM_SESSION: id that children inherit; NULL = this process starts one
	bool python;          // KMEMSHIM_PYTHON=0 turns Python frames off
	// KMEMSHIM_PYTHON_OBJECTS=0|1: small objects too; not set: where malloc sees none of them
	enum settings_choice python_objects;
	// KMEMSHIM_NATIVE=auto|to-python|all: how much of the native frames, in a process with Python
	enum settings_native native;
	bool imports_full; // KMEMSHIM_IMPORTS=full keeps what happens inside library imports apart
	// KMEMSHIM_PRIVATE, all but empty, 0, no, off and false; or the session is: no arguments, no text of cells, no folders but those of programs and libraries
	bool is_private;
	bool exact;            // KMEMSHIM_EXACT_PEAK=1: every event is added to the domain's total at once
	uint64_t verify_every; // KMEMSHIM_VERIFY=n: each nth walk is repeated by libunwind; 0 = off
	uint64_t sites_max;    // KMEMSHIM_SITES_MAX: budget of call sites
	// KMEMSHIM_CAPTURE_MAX: bytes of the capture beyond which no new stack is kept whole; 0: lifecycle.c decides
	uint64_t capture_max;
	struct kmem_guard_setting guard;     // KMEMSHIM_GUARD=90%|12G; nothing: there is none
	enum kmem_guard_action guard_action; // KMEMSHIM_GUARD_ACTION=note|interrupt|raise|exec:CMD
	// KMEMSHIM_LOOKER, from the launcher: the process that looks who holds what; 0 = nobody does
	uint64_t looker_pid;
	// KMEMSHIM_MEMORY, from the launcher: a folder in memory, where the capture lies while the process runs; NULL = on the disk
	const char *memory;
	// KMEMSHIM_SAMPLE: of the heap a sample is recorded, one block for so many bytes on average; 0 = each block
	uint64_t sample_bytes;
	uint64_t object_sample_bytes; // for which one small Python object is recorded: as often as the heap, or less
	uint64_t snapshots;           // KMEMSHIM_SNAPSHOTS=2..32: so many states at even distances; 0 = none
	bool walks_all;               // of native and verify_every: nothing is taken from memory
	uint64_t slow_below; // requests of fewer bytes never go the fast way: all if walks_all, else those that are samples
};

extern struct settings settings;

/* Reads envp (NULL-terminated "NAME=value" strings, which must stay). Safe before libc is initialised. */
void settings_parse(char *const *envp);

/* Behind the session in the environment: its captures are refused, and that was said; they are private, whatever a child's own setting is. */
#define SETTINGS_SESSION_REFUSED "!"
#define SETTINGS_SESSION_PRIVATE "#"
#define SETTINGS_SESSION_MARKS SETTINGS_SESSION_REFUSED SETTINGS_SESSION_PRIVATE

/* Did this process begin the session? The id ends in ".PID" of the one that did. */
bool settings_session_is_of(const char *session, uint32_t pid);

/* Is this process part of a session that another one began? Asks the environment: also before the settings are read. */
bool settings_is_descendant(void);

#endif
