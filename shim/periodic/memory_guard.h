/*
 * memory_guard.h - is so much in use that the limit is near, and what is done then?
 *
 * Settings: KMEMSHIM_GUARD and KMEMSHIM_GUARD_ACTION. Judged at each heartbeat, and before requests that are large beside the room that
 * is left (guard_due.h). When the guard is passed, what each record holds is written into the capture (struct kmem_guard), one line goes
 * to stderr, and then the action: nothing, SIGINT, or the launcher is told. Requests are refused one by one.
 *
 * What is in use depends on the limit. Of a cgroup: what is charged to it, without contents of files, which the kernel drops before it
 * kills. Of RLIMIT_AS: addresses, without the recorder's. Of the machine: memory that is not available; if the guard is a number of bytes, what this process has
 * in memory.
 *
 * A process acts if it was below the guard before, and itself has a 64th of the limit in memory: small processes beside it are left
 * alone. Below 3/4 of the guard it is armed again. malloc keeps much of what is freed. So malloc is told to give it back (malloc_trim)
 * before interrupt or raise act, and when the program has released much. Without this a program would be stopped for memory that is
 * free, and the guard would stay passed until the kernel kills.
 *
 * Safe from   any hook. One thread judges; others go on meanwhile.
 * When full   no room for the record: the line and the action are all.
 * When failing  figures that cannot be read: no guard.
 */
#ifndef MEMORY_GUARD_H
#define MEMORY_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory_limits.h"

/*
 * To be called once, when recording starts. Reads the settings.
 *
 * may_speak  the user wants lines on stderr
 * is_first   of the session: says what is wrong with the settings
 */
void memory_guard_start(bool may_speak, bool is_first);
void memory_guard_forked(void); // forked child: one thread

enum memory_guard_due { MEMORY_GUARD_NOTHING, MEMORY_GUARD_INTERRUPT, MEMORY_GUARD_GIVE_BACK };

/* At a beat. live_bytes: as in heartbeat_take(). The caller does what is due when it has nothing half done. */
enum memory_guard_due memory_guard_judge(const struct memory_limits_now *now, uint64_t live_bytes);

/*
 * malloc_trim(), or SIGINT to this process. A handler may run before this returns, and may jump out: the reentry guard is left
 * meanwhile, and the caller has nothing half done.
 */
void memory_guard_do(enum memory_guard_due due);

/* Bytes that are left until the guard, at the last look. UINT64_MAX: it is not armed, or there is none. 0: nobody has looked yet. */
uint64_t memory_guard_room(void);

/* How often the guard was passed. bytes: of the last time, what was in use then or asked for, the guard, and the limit. */
uint32_t memory_guard_passings(uint64_t bytes[3]);

/*
 * May `bytes` more be asked for? False: the request is to fail. Keeps errno. A request for new memory stops nobody until it would pass
 * the limit itself, because it may stay untouched.
 *
 * is_growth  of a block in use, which is about to be filled without any other request: the guard is passed now if this would pass it
 */
bool memory_guard_allows(unsigned domain, uint64_t bytes, bool is_growth);

#endif
