/*
 * kmem_format.h - what is in a .kmem file, byte by byte?
 *
 * The contract between the recorder (shim/) and the reader (analyzer/): types, units and invariants, nothing that runs. A capture is
 * written through a shared mapping while the program runs and read after it died, perhaps by SIGKILL between any two instructions,
 * perhaps on another machine of the same byte order. It is bounded by call sites, not by run time.
 *
 *   byte 0                       header, domain table, heartbeat ring, chunk directory  (KMEM_HEAD_BYTES)
 *   KMEM_HEAD_BYTES + n * 64 KiB chunk n, owned by the section that directory entry n names
 *
 * A section is the concatenation of its chunks in directory order; the recorder maps them side by side, so a record may cross a
 * chunk's end. All integers are in the recorder's byte order; `endian` tells.
 *
 * Invariants, tested by number in tests/unit/shim/capture/test_capture_file.c and test_capture_reader.c:
 *   F1  contents before the index that leads to them: a site's `stack`, a frame's code index and a
 *       module's place in the list are stored after the record they lead to.
 *   F2  the space of a chunk is allocated on disk before its directory entry says that it exists.
 *   F3  records in KMEM_SECTION_RECORDS never change once an index leads to them, and carry a checksum
 *       of themselves (fields named "mutable" excepted).
 *   F4  what kmem_identity_checksum() covers never changes after `identity_checksum` was stored: the first words of the
 *       header, the identity, the names of the domains and what a fork left in them.
 *   F5  in a capture that was closed cleanly every directory entry has `is_sealed` and the checksum of
 *       its chunk, and `head_checksum` covers the whole head, except what others than the recorder write, which has checksums of its own:
 *       the launcher's part, the request of a command, and all of KMEM_SECTION_HOLDERS.
 *   F6  a single word that leads somewhere or decides something is stored twice, once inverted, in one atomic word
 *       (kmem_twice()), or as one of a few words of which no two differ in less than two bytes.
 *   F7  heartbeats, refused requests, counts of live objects, resident lines, marks, releases, points of the history and what was inherited carry a checksum of themselves from the moment they count.
 *       What devices held at a refusal is written anew when its place in the ring is: between the two moments at which the
 *       request says that it is being written. The same holds for a snapshot and its mark.
 *
 * So one damaged byte of a closed capture is always seen. In a capture that was not closed the same holds for all but
 * counters, and for these as far as they repeat each other (analyzer/capture/capture_cross_check.c).
 */
#ifndef KMEM_FORMAT_H
#define KMEM_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "kmem_efforts.h"

#define KMEM_MAGIC "kmemshim" // 8 bytes, no terminator
#define KMEM_VERSION 13u
#define KMEM_VERSION_OLDEST 9u // that a reader takes: what it has not is 0
#define KMEM_ENDIAN 0x01020304u
#define KMEM_CHUNK_BYTES 65536u
#define KMEM_CHUNKS_MAX 8192u // 512 MiB of chunks
#define KMEM_DOMAINS_MAX 64u
#define KMEM_HEARTBEATS_MAX 128u
#define KMEM_FAILED_MAX 16u
#define KMEM_LIMITS_MAX 8u
#define KMEM_PYTHON_SAMPLE_BYTES (UINT64_C(256) << 10) // kmem_header.python_sample_bytes, today
#ifdef __aarch64__
#define KMEM_ADDRESS_BITS 48 // user addresses of aarch64
#else
#define KMEM_ADDRESS_BITS 47 // user addresses of x86-64 with 4-level page tables
#endif

/*
 * Where bytes live. The numbers are rows of the domain table in the file, which also holds their names,
 * so that a reader needs no table of its own. Devices follow from KMEM_DOMAIN_CUDA_FIRST.
 */
enum kmem_domain {
	KMEM_DOMAIN_HEAP = 0,         // malloc family: requested bytes
	KMEM_DOMAIN_MMAP = 1,         // private anonymous mappings that can be touched
	KMEM_DOMAIN_RESERVED = 2,     // PROT_NONE or MAP_NORESERVE: address space, until mprotect makes it writable
	KMEM_DOMAIN_FILE = 3,         // private and read-only mappings of files
	KMEM_DOMAIN_SHARED = 4,       // shared mappings that can be written
	KMEM_DOMAIN_CUDA_PINNED = 5,  // "cuda/pinned": host memory given out by the CUDA driver
	KMEM_DOMAIN_CUDA_MANAGED = 6, // "cuda/managed"
	// "python/arena": mappings in which the interpreter keeps small objects, when it is not recorded which; else they
	// are address space, and the objects are in the heap
	KMEM_DOMAIN_PYTHON_ARENA = 7,
	KMEM_DOMAIN_CUDA_FIRST = 8, // "cuda:0"; device n is row KMEM_DOMAIN_CUDA_FIRST + n
	KMEM_DOMAIN_CUDA_LAST = 39, // "cuda:31"
	// "cuda:0/tensors": blocks that PyTorch gave out; they lie in memory of "cuda:0", and their bytes are never added
	// to its
	KMEM_DOMAIN_TENSORS_FIRST = 40,
	KMEM_DOMAIN_TENSORS_LAST = 55, // "cuda:15/tensors"
	// "cuda/registered": memory that the driver pinned where it is counted already: never add it up
	KMEM_DOMAIN_CUDA_REGISTERED = 56,
	// "cuda/imported": memory of other processes and of graphics, opened here; no use of a device
	KMEM_DOMAIN_CUDA_IMPORTED = 57,
	// "cuda/graph": what nodes of graphs take from the device when the graph runs, at most
	KMEM_DOMAIN_CUDA_GRAPH = 58,
	// "library": pages in use inside reservations that a library's own allocator manages. Estimated: what a look
	// found to have grown is booked at the line that ran then, behind the native frame that made the reservation,
	// which names the library. Memory of the host, like the heap
	KMEM_DOMAIN_LIBRARY = 59,
	// "python/object": small objects of Python, estimated. On average one object is recorded for each
	// kmem_header.python_sample_bytes that are asked for. It stands for that many bytes: bytes are samples times
	// that. Counts are objects: a sample of n bytes adds python_sample_bytes / n. Generations count samples. The
	// objects lie in python/arena, which holds their bytes too: never add the two
	KMEM_DOMAIN_PYTHON_OBJECT = 60,
	// "heap/sample": blocks of the heap, estimated, where only a sample is recorded (kmem_header.heap_sample_bytes). A
	// block stands for the bytes and the blocks that its size says (shim/record/heap_samples.h). Generations count samples
	KMEM_DOMAIN_HEAP_SAMPLE = 61,
};

enum kmem_section {
	KMEM_SECTION_NONE = 0,
	KMEM_SECTION_SITES = 1,       // struct kmem_site[], dense, in order of first use
	KMEM_SECTION_GENERATIONS = 2, // struct kmem_generations[]
	KMEM_SECTION_RECORDS = 3,     // records of several types, each behind a struct kmem_record
	KMEM_SECTION_HOLDERS = 4,     // struct kmem_holders[2]: four chunks, one behind the other, or none
	KMEM_SECTION_COUNT = 5,
};

/* What could not be recorded; every report prints those that are not 0. */
enum kmem_loss {
	KMEM_LOST_EVENTS = 0,        // allocations seen but not recorded: no room in any table
	KMEM_LOST_EVENT_BYTES = 1,   // their requested bytes
	KMEM_LOST_SITES = 2,         // events booked with a KMEM_STACK_MERGED stack
	KMEM_LOST_STACKS = 3,        // events whose stack could not be taken (too little stack left, ...)
	KMEM_LOST_UNKNOWN_FREES = 4, // releases of addresses that we never saw given out
	KMEM_LOST_MISSED_FREES = 5,  // an address was given out again without a release that we saw
	KMEM_LOST_REENTRANT = 6,     // calls made while this thread was inside the shim (signal handlers)
	KMEM_LOST_UNWINDS = 7,       // native walks that ended before the outermost frame
	KMEM_LOST_PYTHON_FRAMES = 8, // Python frames that failed a validity check
	// times that a code object had no room for its text: of one without a record, each look
	KMEM_LOST_PYTHON_TEXT = 9,
	KMEM_LOST_MODULES = 10,          // modules that could not be described
	KMEM_LOST_TEARDOWN_EVENTS = 11,  // events after Python began to finalise: deliberately not booked
	KMEM_LOST_GROWTH = 12,           // times the capture could not grow
	KMEM_LOST_FALLBACK_UNWINDS = 13, // walks that needed libunwind: not a loss, a cost worth knowing
	// lines of Python with too many native ways to tell all apart: small blocks go without
	KMEM_LOST_NATIVE_PATHS = 14,
	// the same as unknown frees, in a forked child: of blocks that it inherited. Not a loss
	KMEM_LOST_INHERITED_FREES = 15,
	KMEM_LOST_CONTEXTS = 16, // contexts of a device's driver without a place of their own: their end is not seen
	KMEM_LOSS_COUNT = 24,
};

enum kmem_state {
	KMEM_STATE_STARTING = 0,
	KMEM_STATE_RUNNING = 0x01010101,       // also what SIGKILL leaves behind
	KMEM_STATE_CLEAN_EXIT = 0x02020202,    // exit, _exit or quick_exit was reached
	KMEM_STATE_EXEC_REPLACED = 0x03030303, // the image was replaced by exec; nothing is sealed
};

#define KMEM_YES 0x01010101u // of a field that is 0 or this (F6)

/*
 * The high-water mark of one total and who held it (see shim/tables/peak.c): two words changed by one 128-bit
 * compare-and-swap. Bits 0 to 47 of the words are `now` and `high`; bits 48 to 63 are the low (in `now`)
 * and high (in `high`) half of a 32-bit epoch. kmem_words.h unpacks them.
 *
 *   in a domain   now = live bytes less what threads have not added yet (see peak_error_bytes), high = highest live bytes
 *                 before the last fall, epoch = falls from a new maximum so far
 *   in a site     now = live bytes, high = live bytes when the epoch began, epoch = last one folded in
 *
 * The sum of the sites' `now` is what is live; a reader puts it in the place of the domain's.
 */
struct kmem_peak_word {
	_Alignas(16) uint64_t now;
	uint64_t high;
};
static_assert(sizeof(struct kmem_peak_word) == 16, "one cmpxchg16b");

/* One row of the domain table; its counters are the sums of its sites'. Mutable, except the name. */
struct kmem_domain_row {
	struct kmem_peak_word peak; // bytes
	uint64_t inherited_bytes;   // live in the parent at fork, not in any figure of a site
	uint64_t inherited_count;
	_Atomic uint64_t peak_resident_bytes; // resident set at the last heartbeat before the peak, 0 = none
	_Atomic uint64_t is_used;             // KMEM_YES: a request was refused here, whether or not a site holds anything
	char name[32];                        // "heap", "cuda:0"; zero-terminated
	// of live mappings, given back to the system by madvise; counted at each such call
	_Atomic uint64_t returned_bytes;
	_Atomic uint64_t kept_peak_bytes; // the peak of the phases before this one; 0 = there was none
	uint64_t reserved[4];
};
static_assert(sizeof(struct kmem_domain_row) == 128, "two cache lines per domain");

/*
 * One call site in one thread: everything requested through one stack, in one domain, and released there. Threads do not share
 * records, so that counting needs no locked instruction: a call site is the sum of the records with its stack and domain.
 * What a thread releases of another thread's blocks stands in its own record, so a single record may have freed more than
 * allocated. A record outlives its thread and is used on by the next thread that gets the slot. Mutable.
 *
 * Invariants, tested by number in tests/unit/shim/sites/test_site_table.c, S3 in test_tracker.c, S5 in
 * tests/unit/shim/tables/test_generations.c:
 *   S1  stack == 0: the site is not published yet; a file that has one comes from a process that died
 *       in between: its bytes count, its frames are unknown.
 *   S2  stack, domain, slot, first_generation and their check never change once stack != 0.
 *   S3  allocated and freed counters only grow; live bytes = allocated_bytes - freed_bytes = peak.now, modulo 2^48.
 *   S4  only the thread in `slot` changes a record; slot 0 belongs to all threads without one, by atomic operations.
 *   S5  generations is 0 until it is set once, then constant.
 */
struct kmem_site {
	struct kmem_peak_word peak; // bytes of this site: live, and its share of the domain's peak
	_Atomic uint64_t allocated_bytes;
	_Atomic uint64_t freed_bytes;
	_Atomic uint64_t allocated_count;
	_Atomic uint64_t freed_count;
	_Atomic uint32_t stack;       // index + 1 of its struct kmem_stack in RECORDS, in units of 8 bytes
	_Atomic uint32_t generations; // index + 1 in GENERATIONS
	// bits 0-23 index + 1 of the next record with this stack and domain, for the recorder only; bits 24-31
	// kmem_site_check()
	_Atomic uint32_t next_same_stack;
	uint16_t slot;            // which thread's
	uint8_t domain;           // row of the domain table
	uint8_t first_generation; // generation clock when the record was made
};
static_assert(sizeof(struct kmem_site) == 64, "one cache line per site");

/*
 * Births of one site by generation, for sites that hold blocks from more than one. A process-wide clock of 8 bits, 1 to 255, ticks
 * eight times per doubling of what was allocated, in bytes or in blocks, whichever grows faster; one event moves it by one tick at
 * most (all domains but reserved and file; shim/tables/generations.c).
 * A generation of a site is a tick in which it allocated. Its blocks are counted in the bucket of the tick, kmem_generation_bucket(): 60
 * ticks, seven doublings and a half, have one each, and so the blocks of a long run that are older than that are counted with those of the
 * tick that has their bucket now. live_count[b - 1] counts live blocks of bucket b, modulo 2^32: a release is counted in the record of
 * the thread that makes it, so only sums over the records of a call site are what is alive. Blocks born before the counters were claimed
 * are the site's live count less the sum of the counters. Mutable.
 * Before version 12 there was no `born`, and 62 counters: of the site's first to its 62nd generation, the last one with all later ones.
 */
#define KMEM_GENERATION_BUCKETS 60
#define KMEM_GENERATION_BUCKETS_11 62
#define KMEM_CLOCK_MAX 255u
struct kmem_generations {
	_Atomic uint32_t site; // index + 1 in SITES
	// bits 0-7 bucket of the latest generation, 8-15 clock at which it began (before version 12: generations so far, 0); 16-23 clock of the
	// latest birth; 24-31 of samples (domain python/object) those of the latest generation, 255 = and more: it ends when the clock has
	// moved and it has had eight. 0: only what others allocated was released
	_Atomic uint32_t births;
	_Atomic uint64_t born; // bit b - 1: bucket b is that of a generation among the latest 60 ticks
	_Atomic uint32_t live_count[KMEM_GENERATION_BUCKETS];
};
static_assert(sizeof(struct kmem_generations) == 256, "four cache lines per generation block");

enum kmem_record_type {
	KMEM_RECORD_NONE = 0, // reserved, never finished: the process died while writing it
	KMEM_RECORD_STACK = 1,
	KMEM_RECORD_CODE = 2,
	KMEM_RECORD_MODULE = 3,
	KMEM_RECORD_NOTE = 4,            // one line of text for the report ("Python 3.99: frames are not read: ...")
	KMEM_RECORD_TYPE = 5,            // the name of a type of Python objects
	KMEM_RECORD_CELL = 6,            // one run of a cell of a notebook
	KMEM_RECORD_DEVICE_SNAPSHOT = 7, // what devices held when they refused a request
	KMEM_RECORD_EXIT = 8,            // what was held when the program began to exit
	KMEM_RECORD_GUARD = 9,           // what was held when the guard was passed
	KMEM_RECORD_SNAPSHOT = 10,       // what was held when the program, a person or a clock asked for it
	KMEM_RECORD_HISTORY = 11,        // points of what was held over time
	KMEM_RECORD_KEPT_PEAK = 12,      // what was held at the peak of the phases before this one
};

/* In front of every record; records start at multiples of 8 bytes. */
struct kmem_record {
	uint32_t checksum; // kmem_checksum() of the record's bytes after this field, mutable fields taken as 0
	uint16_t type;     // enum kmem_record_type
	uint16_t flags;    // by type
	uint32_t bytes;    // whole record, this header included, without padding
	// index + 1 (units of 8 bytes) of the record before it in its list (modules, notes, stacks); 0 = first
	uint32_t previous;
};
static_assert(sizeof(struct kmem_record) == 16, "");

/*
 * A frame is one word.
 *   bit 63 set    Python: bits 0 to 31 index of the struct kmem_code (units of 8 bytes, not + 1), bits 32
 *                 to 61 the byte offset, in the bytecode, of the first instruction of its line
 *   bit 63 clear  native: bits 0 to 46 the address that the walk found: a return address, so the call is
 *                 the instruction before; with bit 62 set the exact address (interrupted by a signal);
 *                 with bit 61 set its function called itself: further frames of it, in a row, were left out before
 *                 the next word
 */
#define KMEM_FRAME_PYTHON (UINT64_C(1) << 63)
#define KMEM_FRAME_EXACT (UINT64_C(1) << 62)
#define KMEM_FRAME_REPEATED (UINT64_C(1) << 61) // of a native frame
#define KMEM_FRAME_PC_MASK ((UINT64_C(1) << 48) - 1)
#define KMEM_FRAME_CODE_MASK UINT64_C(0xffffffff)
#define KMEM_FRAME_OFFSET_SHIFT 32
#define KMEM_FRAME_OFFSET_MASK UINT64_C(0x3fffffff)

enum kmem_stack_flags {
	KMEM_STACK_TRUNCATED = 1,  // `omitted` frames were left out after the first `omitted_at`
	KMEM_STACK_NO_END = 2,     // the walk stopped before the outermost frame
	KMEM_STACK_IMPORT_CUT = 4, // taken inside an import: frames inside the module's body were left out
	// no room: this stands for later stacks of its domain that end with its frames, or have any
	KMEM_STACK_MERGED = 8,
	KMEM_STACK_NO_STACK = 16,      // the stack could not be taken; no frames
	KMEM_STACK_ALTERNATE = 32,     // taken on a stack that is not the thread's own
	KMEM_STACK_EVALUATOR_CUT = 64, // native frames between and below Python frames were left out
	/* Of a thread without Python frames: behind its native ones stand Python frames of another thread (shim/sites/thread_attribution.h). */
	KMEM_STACK_WHILE = 128,       // first one: the user's line at which a Python thread was seen last
	KMEM_STACK_STARTED_BY = 256,  // the rest: where the thread was created, innermost first
	KMEM_STACK_PYTHON_ONLY = 512, // the site held little: Python frames only
	// a mapping of the interpreter's allocator, not by an import: who made it grow says nothing; no frames
	KMEM_STACK_ARENA = 1024,
	// domain library: frames[0] is the native code that made the reservation; behind it the line that ran when the
	// growth was found, of the thread itself or as KMEM_STACK_WHILE says; perhaps native frames
	KMEM_STACK_ESTIMATED = 2048,
	// KMEM_STACK_WHILE or _STARTED_BY of a thread whose own Python frames are all of libraries: what was given begins at the first
	// frame of the user's (without KMEM_CODE_LIBRARY and KMEM_CODE_IMPORTLIB)
	KMEM_STACK_LIBRARY_ONLY = 4096,
};

/*
 * Stacks that follow each other share most of their outer frames: those stand once. The whole stack is frames[], then the
 * outermost (frame_count - own_count) frames of the whole stack that record.previous leads to. That one stands earlier in the
 * section; a chain has at most KMEM_STACK_CHAIN_MAX links.
 */
#define KMEM_STACK_FRAMES_MAX 384u
#define KMEM_STACK_CHAIN_MAX 32u
struct kmem_stack {
	struct kmem_record record; // flags: enum kmem_stack_flags; previous: see above, 0 when own_count == frame_count
	uint32_t frame_count;      // words of the whole stack
	uint32_t own_count;        // words in frames[]
	uint32_t chain;            // links behind this record: 0 without `previous`, else one more than there
	uint32_t omitted;          // frames left out in the middle
	uint32_t omitted_at;       // how many of the whole stack's words stand before the gap
	uint32_t module_version;   // which modules were loaded: see struct kmem_module
	uint64_t frames[];         // innermost first
};

enum kmem_code_flags {
	KMEM_CODE_LIBRARY = 1,     // standard library, site-packages or frozen: not the user's own
	KMEM_CODE_MODULE_BODY = 2, // the code of a module's top level
	KMEM_CODE_IMPORTLIB = 4,   // the import system itself
	KMEM_CODE_CUT_TEXT = 8,    // a text was longer than we keep, or there was no room for the line table
	KMEM_CODE_CELL = 16,       // a cell of a notebook or of IPython: its text is in a struct kmem_cell
};

/* One Python code object. Text is UTF-8 (names of files: bytes) without terminators, in this order, right behind the struct. */
struct kmem_code {
	struct kmem_record record; // flags: enum kmem_code_flags
	uint32_t first_line;
	uint32_t python_version; // 0x030b for 3.11: chooses the line table's format
	uint32_t file_bytes;
	uint32_t function_bytes;   // qualified name where the interpreter has it
	uint32_t line_table_bytes; // co_linetable, or co_lnotab before 3.10
	uint32_t reserved;
	/* char file[file_bytes]; char function[function_bytes]; uint8_t line_table[line_table_bytes]; */
};

/*
 * One loaded ELF object, as far as stacks lead into it. The list starts at kmem_header.modules. A native
 * frame of a stack belongs to the module with start <= pc < end and loaded_version <=
 * stack.module_version < that in `unloaded`.
 */
struct kmem_module {
	struct kmem_record record;
	uint64_t start_addr; // of the mapped object
	uint64_t end_addr;
	uint64_t load_bias; // address in memory - address in the file's symbol table
	uint32_t loaded_version;
	uint32_t reserved;
	_Atomic uint64_t unloaded; // kmem_twice() of the generation, 0 = still loaded; mutable
	uint64_t file_size_bytes;  // when it was seen; 0 = unknown
	uint64_t file_mtime_ns;
	uint32_t build_id_bytes; // 0 = none
	uint32_t path_bytes;
	uint8_t build_id[32];
	/* char path[path_bytes]; */
};

enum kmem_cell_flags {
	KMEM_CELL_NO_LINES = 1, // what was compiled could not be read
};

/*
 * One run of a cell. The list starts at kmem_header.cells. Texts are UTF-8 without the newlines at their end, typed, then compiled,
 * right behind the struct. The file name in a kmem_code holds a hash of the typed text, lines are those of the compiled one.
 */
struct kmem_cell {
	struct kmem_record record; // flags: enum kmem_cell_flags
	uint32_t number;           // 12 for In[12]
	uint32_t typed_bytes;
	uint32_t compiled_bytes; // 0: the same as typed
	uint32_t reserved;
	/* char typed[typed_bytes]; char compiled[compiled_bytes]; */
};

struct kmem_note {
	struct kmem_record record;
	uint32_t text_bytes;
	uint32_t reserved;
	/* char text[text_bytes]; */
};

struct kmem_type {
	struct kmem_record record;
	uint32_t name_bytes;
	uint32_t reserved;
	/* char name[name_bytes]: "dict", "numpy.ndarray", of a class with its module's name in front */
};

/*
 * What is alive at a call site, at the last look: about so many objects of that type. Estimated from a sample, for the records that
 * hold most and the types that there are most of. Mutable.
 */
#define KMEM_OBJECT_CENSUS_MAX 192u
struct kmem_object_count {
	uint32_t site; // index + 1 in SITES
	uint32_t type; // index + 1 of its struct kmem_type in RECORDS, in units of 8 bytes
	uint64_t count;
};
static_assert(sizeof(struct kmem_object_count) == 16, "");

/* One directory entry; entry n describes chunk n. Entries 0 to chunk_count - 1 are valid, none behind them but for a moment. */
struct kmem_chunk {
	uint8_t section;           // enum kmem_section
	_Atomic uint8_t is_sealed; // the checksum is valid: nothing in the chunk changes any more
	uint8_t inverted;          // ~section: the entry is there, whatever chunk_count says
	uint8_t reserved;
	_Atomic uint32_t checksum; // kmem_checksum() of the chunk's 64 KiB
};
static_assert(sizeof(struct kmem_chunk) == 8, "");

/* Now and then: how close to the limit? A ring; the newest has the highest sequence. Mutable. */
struct kmem_heartbeat {
	_Atomic uint64_t sequence; // 1, 2, ...; it counts when kmem_header.heartbeat_checksums has a checksum of it
	uint64_t monotonic_ns;
	uint64_t live_bytes;      // heap + mmap + shared + python/arena + library
	uint64_t resident_bytes;  // of this process
	uint64_t cgroup_bytes;    // charged to the cgroup that owns the limit; 0 = unknown
	uint64_t limit_bytes;     // the limit in force then; UINT64_MAX = none
	uint64_t available_bytes; // MemAvailable of the machine; UINT64_MAX = unknown
	uint64_t swap_free_bytes;
};
static_assert(sizeof(struct kmem_heartbeat) == 64, "");

enum kmem_failed_flags {
	KMEM_FAILED_MEMORY_KNOWN = 1, // free_bytes, total_bytes: what the driver said right after it refused
	// host memory: `pool_kept` is the thread's slot, `thread` what it was given before, in MiB
	KMEM_FAILED_SLOT_KNOWN = 2,
	KMEM_FAILED_BY_GUARD = 4, // not the system refused it: the guard did (KMEM_GUARD_RAISE)
};

/* Device memory alone: what the thread that was refused got from the same domain since. Others are not followed. */
enum kmem_failed_outcome {
	KMEM_FAILED_OPEN = 0,                // nothing
	KMEM_FAILED_GOT_LESS = 0x01010101,   // less, within a second: it tried again with a smaller request
	KMEM_FAILED_GOT_ENOUGH = 0x02020202, // at least as much
};

/* A request that the system refused. Mutable. */
struct kmem_failed {
	_Atomic uint64_t sequence; // 1, 2, ...; it counts when it has a checksum
	uint64_t bytes;
	uint64_t monotonic_ns;
	uint64_t events_before; // sum of the domain's allocated_count when it failed: later ones mean recovery
	// of the device, all processes; where total_bytes is 0: addresses that recording had reserved
	uint64_t free_bytes;
	uint64_t total_bytes;
	uint32_t site; // index + 1 in SITES; 0 = unknown
	uint16_t domain;
	uint16_t flags;  // enum kmem_failed_flags
	int32_t error;   // errno, or the CUDA result
	uint32_t thread; // its number in the system; 0 = unknown; of host memory: see the flags
	// index + 1 of its struct kmem_device_snapshot, in units of 8 bytes, if the sequence there is this one
	uint32_t device_snapshot;
	uint16_t space_limit; // kmem_rough() of the limit on address space in force then; 0 = none, or not known
	// the same of what the driver's pools of the device kept for themselves; 0 = nothing, or not known
	uint16_t pool_kept;
	// kmem_checksum() of what is before it (F7), stored last; 0 = never written, or being written
	_Atomic uint32_t checksum;
	_Atomic uint32_t outcome; // enum kmem_failed_outcome (F6); not in the checksum
};
static_assert(sizeof(struct kmem_failed) == 80, "");

/*
 * When a device refused: the live bytes of every domain, and the records of the device, its tensors, of pinned and managed memory,
 * from the largest power of two down, as many as fit. A place of the ring keeps its record and writes the next one into it.
 */
#define KMEM_DEVICE_SNAPSHOT_MAX 512u
#define KMEM_DEVICE_SNAPSHOT_GENERATIONS 32u
struct kmem_snapshot_site {
	uint32_t site; // index + 1 in SITES; 0 = no entry
	// of that record; see struct kmem_site: below 0 where its thread released what others allocated
	int32_t live_count;
	int64_t live_bytes;  // the same
	uint64_t kept_bytes; // tensors: of blocks that were alive when PyTorch gave up before, and are since
};
struct kmem_device_snapshot {
	struct kmem_record record; // bytes: of the whole struct
	uint64_t sequence;         // of the struct kmem_failed; 0 = being written
	uint32_t left_out;         // records of these domains without a place
	uint32_t clock;            // generation clock
	int64_t live_bytes[KMEM_DOMAINS_MAX];
	struct kmem_snapshot_site sites[KMEM_DEVICE_SNAPSHOT_MAX];
	// of the first of `sites` that have any; site 0 = no entry
	struct kmem_generations generations[KMEM_DEVICE_SNAPSHOT_GENERATIONS];
};
static_assert(sizeof(struct kmem_device_snapshot) % 8 == 0 && sizeof(struct kmem_snapshot_site) == 24, "");

/*
 * When exit() began, or main returned: what each record held, before exit handlers and destructors of static objects. They count
 * for a program that ended by itself, unless more was live at its very end: then it did its work in such a handler. Entries by record number,
 * those that held nothing left out, then the copies of counters by generation.
 */
struct kmem_exit_site {
	uint32_t site;        // index + 1 in SITES
	uint32_t generations; // number + 1 of its copy; 0 = none was alive by generation
	// of that record; see struct kmem_site: below 0 where its thread released what others allocated
	int64_t live_bytes;
	int64_t live_count; // the same
};
struct kmem_exit {
	struct kmem_record record;
	uint64_t monotonic_ns;
	uint64_t volume_bytes; // kmem_header.volume_bytes then
	int64_t live_bytes;    // of all domains that are memory (kmem_domain_is_memory())
	uint32_t clock;        // generation clock
	uint32_t site_count;
	uint32_t generation_count;
	uint32_t reserved;
	struct kmem_exit_site sites[];
	/* struct kmem_generations generations[generation_count]; */
};

/*
 * Steps: rounds of what the program does again and again. A second clock beside what it allocates: the clock of generations ticks for
 * whichever grows by the larger part (kmem_clock_at(); a step is KMEM_TICK_STEP_BYTES of its measure), but not for rounds of a loop that were
 * only recognised. One source counts, the highest that there is.
 */
enum kmem_step_source {
	KMEM_STEPS_NONE = 0,
	KMEM_STEPS_CELLS = 0x01010101,   // cells of a notebook that were run
	KMEM_STEPS_LOOP = 0x02020202,    // rounds of the outermost loop that was seen: an estimate, from samples
	KMEM_STEPS_PROGRAM = 0x03030303, // the program said so: kmemshim_step()
};

/* Mutable; relaxed. What was counted before the source in force, or the loop, began is not in it. */
struct kmem_steps {
	_Atomic uint32_t source; // enum kmem_step_source (F6)
	// loop: the frame whose line comes again, counted from the outer end of the stack; 1 = the outermost
	_Atomic uint32_t depth;
	_Atomic uint64_t place;    // loop: kmem_twice() of index + 1 of a struct kmem_stack that leads through it; 0 = none
	_Atomic uint64_t count;    // steps that were begun
	_Atomic uint64_t began_ns; // CLOCK_MONOTONIC, when the first of these was counted
	uint64_t reserved;         // 0
	_Atomic uint64_t tick_steps; // the sum that the clock is moved by, as tick_bytes of the header
	_Atomic uint64_t measure;    // the clock's when the latest step was counted
	// kmem_rough_count() of `count`, and of milliseconds since kmem_identity.start_monotonic_ns, when the clock came to this; [0] is not
	// used
	_Atomic uint16_t count_at[KMEM_CLOCK_MAX + 1];
	_Atomic uint16_t ms_at[KMEM_CLOCK_MAX + 1];
};
static_assert(sizeof(struct kmem_steps) == 1080, "");

enum kmem_mark_kind {
	KMEM_MARK_PROGRAM = 1,    // kmemshim_mark(), kmemshim_snapshot()
	KMEM_MARK_OUTSIDE = 2,    // commands "mark" and "snapshot"
	KMEM_MARK_GUARD = 3,      // the guard was passed: `record` is a struct kmem_guard, or 0
	KMEM_MARK_REFUSED = 4,    // a request was refused; repeated ones have one mark a second
	KMEM_MARK_EVEN = 5,       // run --snapshots: at even distances
	KMEM_MARK_HIGH_WATER = 6, // live bytes were the highest so far: at most an eighth below those of the peak
};

/*
 * A named moment; with `record` it is a snapshot: what each site held. Written anew when its place is; mutable. Places are rings by
 * themselves: the first KMEM_MARKS_PLAIN for marks alone, those of the guard and of refused requests too; then the named snapshots; the even
 * ones; the two at the high-water mark.
 */
#define KMEM_MARK_NAME_BYTES 56u
#define KMEM_MARKS_PLAIN 64u
#define KMEM_SNAPSHOTS_NAMED 30u
#define KMEM_SNAPSHOTS_EVEN 32u
#define KMEM_SNAPSHOTS_HIGH_WATER 2u
#define KMEM_MARKS_MAX (KMEM_MARKS_PLAIN + KMEM_SNAPSHOTS_NAMED + KMEM_SNAPSHOTS_EVEN + KMEM_SNAPSHOTS_HIGH_WATER)
struct kmem_mark {
	_Atomic uint32_t checksum; // kmem_mark_checksum() (F7), stored last; 0 = never written, or being written
	uint32_t kind;             // enum kmem_mark_kind
	uint64_t sequence;         // 1, 2, ... of all of them
	uint64_t monotonic_ns;
	uint64_t step;           // kmem_steps.count then
	uint64_t volume_bytes;   // kmem_header.volume_bytes then
	uint64_t resident_bytes; // of this process, at the last beat; 0 = unknown
	int64_t live_bytes;      // of heap, mmap, shared, python/arena and library
	uint32_t clock;          // generation clock
	uint32_t step_source;    // of `step`
	uint32_t record; // index + 1 of its struct kmem_snapshot or kmem_guard, in units of 8 bytes; 0 = a mark alone
	uint32_t is_cut; // the name was longer
	char name[KMEM_MARK_NAME_BYTES]; // UTF-8 as it was given, cut; zeros behind it
};
static_assert(sizeof(struct kmem_mark) == 128, "two cache lines");

/* What a command asks of a running program, written with one pwrite. The recorder looks now and then, as it allocates. */
struct kmem_request {
	uint32_t checksum; // kmem_checksum() of the rest
	uint32_t wants;    // 1 = a mark, 2 = a snapshot
	uint64_t number;   // differs from that of the request before: a moment, CLOCK_MONOTONIC
	char name[KMEM_MARK_NAME_BYTES];
};
static_assert(sizeof(struct kmem_request) == 72, "");

/*
 * Who releases what was allocated where, from a sample: now and then one block of a thread is watched (shim/sites/releases.h), and when it is
 * released before the program begins to exit, that is counted. Not all pairs have room. Mutable. Before version 11 there was none.
 */
#define KMEM_RELEASES_MAX 160u
struct kmem_release {
	_Atomic uint32_t checksum; // kmem_release_checksum() (F7), stored last; 0 = empty, or being written
	uint32_t site;             // index + 1 in SITES: where the blocks were allocated
	uint32_t releaser;         // the same: the stack that released them; that record may have allocated nothing
	uint32_t count;            // of watched blocks
};
static_assert(sizeof(struct kmem_release) == 16, "");

/*
 * Temporary blocks: released before their thread allocated again. A word of a site: bits 0-31 index + 1 in SITES, 32-47 watched blocks that their
 * thread released, 48-63 of these the temporary ones; before more than 65,535 are counted, both are halved. Not all sites have room. Mutable.
 */
#define KMEM_TEMPORARY_MAX 40u

/* Beside them, in the order of the file. */
struct kmem_timeline {
	struct kmem_steps steps;
	_Alignas(64) _Atomic uint64_t mark_sequence; // of the newest
	_Atomic uint64_t request_done;               // number of the latest request that was served
	struct kmem_request request;
	// kmem_twice() of index + 1 of the struct kmem_kept_peak in force, in units of 8 bytes; 0 = there is one phase, the whole life
	_Atomic uint64_t kept_peak;
	_Atomic uint64_t kept_spare; // index + 1 of the other one, which is written next; 0 = there is none yet
	struct kmem_release releases[KMEM_RELEASES_MAX];
	_Atomic uint64_t temporary[KMEM_TEMPORARY_MAX]; // 0 = empty, and before version 12
	_Alignas(4096) struct kmem_mark marks[KMEM_MARKS_MAX];
};

/*
 * What each record held: as struct kmem_exit, with or without the counters by generation. A place keeps its record and writes the next one
 * into it, where that fits: `record.bytes` is its room. Where not all fit the largest are there.
 */
struct kmem_snapshot {
	struct kmem_record record;
	uint64_t sequence; // of its mark
	uint32_t site_count;
	uint32_t generation_count;
	uint32_t left_out; // records that held something, and have no place
	uint32_t reserved;
	int64_t left_out_bytes;
	struct kmem_exit_site sites[];
	/* struct kmem_generations generations[generation_count]; */
};
static_assert(sizeof(struct kmem_snapshot) == 48, "");

/*
 * A program may begin a phase (a test, a cell of a notebook): the words of the domains and of the sites are then about the peak of that
 * phase. What each site held at the highest peak of the phases before stands here, and what a domain held in kmem_domain_row.kept_peak_bytes;
 * the peak of the process is the higher one. There are two of these records, written in turn. Entries by record number.
 */
struct kmem_kept_site {
	uint64_t peak_bytes; // modulo 2^48, as the mark of a struct kmem_peak_word
	uint32_t site;       // index + 1 in SITES
	uint32_t reserved;
};
struct kmem_kept_peak {
	struct kmem_record record; // `record.bytes` is its room
	uint32_t site_count;
	uint32_t reserved;
	struct kmem_kept_site sites[];
};
static_assert(sizeof(struct kmem_kept_peak) == 24, "");

/*
 * What was held over time: at most KMEM_HISTORY_POINTS points, in parts that are made when they are needed; kmem_header.history leads to them.
 * With all places in use every second point is given up, and from then on they are as far apart as those that stay. The one at which most was
 * live stays. Places are in no order: `number` is. Mutable. Before version 10 there was none.
 */
#define KMEM_HISTORY_POINTS 512u
#define KMEM_HISTORY_PART_POINTS 16u // a small program has no chunk more for it
#define KMEM_HISTORY_PARTS (KMEM_HISTORY_POINTS / KMEM_HISTORY_PART_POINTS)
#define KMEM_HISTORY_DOMAINS 24u
#define KMEM_HISTORY_SITES 32u
struct kmem_history_point {
	_Atomic uint32_t checksum; // kmem_history_checksum() (F7), stored last; 0 = never written, or being written
	uint8_t domain_count;      // of the two rows below that are filled
	uint8_t site_count;
	uint8_t left_out_domains; // that held something, and have no place
	uint8_t reserved;
	uint64_t number; // 1, 2, ...
	uint64_t monotonic_ns;
	uint64_t resident_bytes; // of this process; 0 = unknown
	uint64_t limit_bytes;    // in force at the heartbeat before; UINT64_MAX = none; 0 = unknown
	uint64_t volume_bytes;   // kmem_header.volume_bytes then
	uint64_t step;           // kmem_steps.count then
	// of all records of a domain; below 0 for a moment where one thread releases what another allocates
	int64_t domain_bytes[KMEM_HISTORY_DOMAINS];
	// live bytes of all records with the stack and domain of that one, the largest first; of domains that are memory, and of tensors
	int64_t site_bytes[KMEM_HISTORY_SITES];
	uint32_t sites[KMEM_HISTORY_SITES]; // index + 1 in SITES
	uint8_t domains[KMEM_HISTORY_DOMAINS];
};
static_assert(sizeof(struct kmem_history_point) == 656, "");
struct kmem_history {
	// bytes: of the whole struct; checksum: of this head alone, kmem_history_head_checksum()
	struct kmem_record record;
	struct kmem_history_point points[KMEM_HISTORY_PART_POINTS];
};

/* What is done when a process passes its guard. */
enum kmem_guard_action {
	KMEM_GUARD_NOTE = 0,      // nothing more
	KMEM_GUARD_INTERRUPT = 1, // SIGINT to the process
	KMEM_GUARD_RAISE = 2,     // the request fails
	KMEM_GUARD_EXEC = 3,      // the launcher runs a command
};
#define KMEM_GUARD_EXEC_PREFIX "exec:"
#define KMEM_GUARD_PIPE \
	"%s/.kmemshim.guard.%s" // folder, session up to its dot: whoever passes its guard writes its pid there; its pid and its limit, who has much live

/* What came of it, as far as it is known before. */
enum kmem_guard_outcome {
	KMEM_GUARD_DONE = 0,
	KMEM_GUARD_IGNORED = 1, // the process ignores SIGINT
	KMEM_GUARD_NOBODY = 2,  // there is no launcher that could run the command
};

/*
 * When a process passed its guard: what each record held. The header leads to the newest, and `record.previous` of each to the one
 * before. Entries by record number, those that held nothing left out.
 */
struct kmem_guard_passing {
	uint64_t monotonic_ns;
	uint64_t used_bytes; // of the limit; of RLIMIT_AS both without the recorder's addresses
	uint64_t guard_bytes;
	uint64_t limit_bytes;
	uint64_t request_bytes;  // that would have passed it, or the limit; 0 = it was passed already
	uint64_t resident_bytes; // of this process
	uint64_t volume_bytes;   // kmem_header.volume_bytes then
	uint32_t clock;          // generation clock
	uint32_t limit_kind;     // enum kmem_limit_kind
	uint32_t action;         // enum kmem_guard_action
	uint32_t outcome;        // enum kmem_guard_outcome
	uint32_t number;         // 1, 2, ...
	uint32_t site_count;
};
struct kmem_guard {
	struct kmem_record record;
	struct kmem_guard_passing passing;
	struct kmem_exit_site sites[]; // without generations
};
static_assert(sizeof(struct kmem_guard) == 96, "");

/*
 * What keeps the blocks of the largest lines alive: one look of the launcher, when the guard is passed or a line is a leak. The recorder makes
 * the room, and never writes there. The launcher writes the older of the two, so that one is whole whenever who is killed: the one with the higher sequence and a
 * right checksum counts. The text is JSON as `kmemshim holders --json` prints it, with its version in it.
 */
#define KMEM_HOLDERS_BYTES (2 * KMEM_CHUNK_BYTES) // of each
#define KMEM_HOLDERS_TEXT_BYTES (KMEM_HOLDERS_BYTES - 40)
struct kmem_holders {
	uint32_t checksum; // kmem_checksum() of the rest, zeros behind the text included
	uint32_t text_bytes;
	uint64_t sequence; // 1, 2, ...; 0 = never written
	uint64_t monotonic_ns;
	uint64_t volume_bytes; // kmem_header.volume_bytes then
	uint64_t leak_bytes;   // live in all then, where a line was a leak; 0 = the guard was passed
	char text[KMEM_HOLDERS_TEXT_BYTES];
};
static_assert(sizeof(struct kmem_holders) == KMEM_HOLDERS_BYTES, "two of them are four chunks");

/* A limit that could end the process. */
enum kmem_limit_kind {
	KMEM_LIMIT_NONE = 0,
	KMEM_LIMIT_CGROUP = 1,        // memory.max or memory.limit_in_bytes of the cgroup named in limit_path
	KMEM_LIMIT_MACHINE = 2,       // MemTotal
	KMEM_LIMIT_ADDRESS_SPACE = 3, // RLIMIT_AS
	KMEM_LIMIT_DATA = 4,          // RLIMIT_DATA
};
struct kmem_limit {
	uint32_t kind;
	uint32_t reserved;
	uint64_t bytes; // UINT64_MAX = unlimited
};

/* Counters that move when the kernel kills for memory. UINT64_MAX = could not be read. */
struct kmem_kill_counters {
	uint64_t cgroup_oom_kill;  // v2 memory.events, v1 memory.oom_control: victims in this cgroup
	uint64_t cgroup_oom;       // v2 memory.events oom of the limit's owner; v1: 0
	uint64_t cgroup_max_hits;  // v2 memory.events max, v1 memory.failcnt
	uint64_t machine_oom_kill; // /proc/vmstat oom_kill
};

#define KMEM_LAUNCHER_SYSTEM_ALLOCATORS 1u // run --system-allocators: known libraries were switched to malloc
#define KMEM_LAUNCHER_LOOK_KILLED 2u       // a look at who holds what was killed; `after` does not count it

/* Filled by `kmemshim run` after the program ended; own checksum, written with one pwrite. */
struct kmem_launcher {
	uint32_t checksum; // kmem_checksum() of the rest; valid only when is_filled
	uint32_t is_filled;
	int32_t wait_status; // as wait4() gave it
	uint32_t flags;      // KMEM_LAUNCHER_*
	struct kmem_kill_counters after;
	uint64_t max_resident_bytes; // ru_maxrss of the program
	uint64_t ended_realtime_ns;
};

/*
 * What the resident set was made of at one look: pages that the kernel says are in memory, summed by what lies there. A look at a large
 * process is taken in pieces and begins at monotonic_ns. The parts add up to resident_bytes. Mutable; two by turns, the newer has the higher sequence.
 */
enum kmem_resident_part {
	KMEM_RESIDENT_OTHER = 0, // nobody told us: not attributed
	KMEM_RESIDENT_BRK = 1,   // below the program break: glibc's main heap
	KMEM_RESIDENT_HEAP = 2,  // mappings with blocks of malloc in them, also where those blocks are gone
	KMEM_RESIDENT_MMAP = 3,  // of the domain of this name, and so on
	KMEM_RESIDENT_RESERVED = 4,
	KMEM_RESIDENT_PYTHON_ARENA = 5,
	KMEM_RESIDENT_SHARED = 6,  // shared mappings that can be written, and all of shared memory
	KMEM_RESIDENT_FILE = 7,    // other mappings of files
	KMEM_RESIDENT_PROGRAM = 8, // the program and its libraries, code and data
	KMEM_RESIDENT_STACKS = 9,  // of all threads
	KMEM_RESIDENT_OWN = 10,    // the recorder's: its tables, the capture
	// in a forked child what would not be attributed elsewhere: nearly all is the parent's
	KMEM_RESIDENT_INHERITED = 11,
	KMEM_RESIDENT_PARTS = 13,
};
struct kmem_resident {
	// 1, 2, ...; 0 = never written; stored last, so that what is being written is the older one
	_Atomic uint64_t sequence;
	uint64_t monotonic_ns;
	uint64_t resident_bytes;
	uint64_t part_bytes[KMEM_RESIDENT_PARTS];
};
static_assert(sizeof(struct kmem_resident) == 128, "");

/*
 * What of KMEM_RESIDENT_OWN is what, at the same two looks: which site each block is of, which stack is which site, how to walk from
 * each code address to its caller, what threads remember, pages of this file; the rest is the library and what is small. Mutable.
 */
enum kmem_own_part {
	KMEM_OWN_OTHER = 0,
	KMEM_OWN_ADDRESSES = 1,
	KMEM_OWN_SITES = 2,
	KMEM_OWN_STACKS = 3,
	KMEM_OWN_THREADS = 4,
	KMEM_OWN_CAPTURE = 5,
	KMEM_OWN_PARTS = 8,
};

/*
 * What the cgroup that owns the limit was charged with, at the same two looks: of all its processes. All 0 = unknown, as before version
 * 12. Mutable.
 */
struct kmem_container {
	uint64_t anonymous_bytes;    // private memory of processes
	uint64_t memory_files_bytes; // files that lie in memory alone (/dev/shm, other tmpfs), and shared memory
	uint64_t cached_bytes;       // contents of files on disks, which the kernel drops before it kills
	uint64_t reserved;
};

/*
 * Which lines hold what is in memory, at the same look as kmem_resident with that sequence? Of each record that holds blocks of 1 MiB and
 * more or mappings of 64 KiB and more: how much of those is resident. Smaller blocks count as resident, but where a sample of pages shows
 * that less than half of a record's are: then they count as one large one, with the most that is resident. Of the heap's pages, from a
 * sample: how many hold no live block (malloc_trim() gives those back), how many are less than half full, and whose few blocks keep these.
 * Mutable; two by turns, beside resident[0] and [1], with a checksum of its own.
 */
#define KMEM_RESIDENT_LINES_MAX 254u
struct kmem_resident_line {
	uint32_t site;                 // index + 1 in SITES; 0 = no entry, and none behind it
	uint32_t large_count;          // its live blocks and mappings that count as large, then
	uint64_t large_bytes;          // requested bytes of these
	uint64_t large_resident_bytes; // of these, in memory
	// estimate: pages of the heap less than half full in which its blocks lie; a page is shared out equally among the
	// records that have blocks in it
	uint64_t pinned_bytes;
};
struct kmem_resident_lines {
	_Atomic uint32_t checksum;  // kmem_checksum() of the rest (F7), stored last; 0 = never written, or being written
	uint32_t sampled_pages;     // of the heap; 0 = nobody looked at it: the four sums of the heap say nothing
	uint64_t sequence;          // of the kmem_resident that was taken at this look
	uint64_t heap_bytes;        // resident pages of malloc's, without those of blocks counted in large_bytes
	uint64_t heap_empty_bytes;  // of heap_bytes: pages without a live block
	uint64_t heap_sparse_bytes; // of heap_bytes: pages with live blocks in less than half of them
	uint64_t heap_sparse_live_bytes; // requested bytes of the blocks in these
	uint64_t left_out_bytes;         // large blocks of records without an entry
	uint64_t left_out_resident_bytes;
	struct kmem_resident_line lines[KMEM_RESIDENT_LINES_MAX]; // those with most bytes, in any order
};
static_assert(sizeof(struct kmem_resident_lines) == 8192, "two pages");

/*
 * Of a forked image: what the parent held when it forked, by its largest records, and how much of the inherited memory was copied
 * by writing to it; all domains that are private to a process. Mutable, but for the sites.
 */
#define KMEM_INHERITED_SITES_MAX 16u
struct kmem_inherited_site {
	uint32_t site; // index + 1 in SITES of the parent's capture
	// kmem_twice_16() of how many of its samples (KMEM_PYTHON_SAMPLE_BYTES each) lie in pages that only the child has now;
	// 0 = none, or nobody looked. Not in the checksum
	_Atomic uint32_t copied_samples;
	uint64_t live_bytes; // of that record, when it forked
};
struct kmem_inherited {
	// kmem_checksum() of the three figures (F7); 0 = never looked, or being written
	_Atomic uint32_t figures_checksum;
	uint32_t sites_checksum;              // of site_count and what follows it; 0 = none
	_Atomic uint64_t copied_bytes;        // at least so much; 0 = nothing worth a look
	_Atomic uint64_t private_dirty_bytes; // private pages that no other process has, at the last look; 0 = never looked
	_Atomic uint64_t
		faulted_bytes; // minor page faults until the last heartbeat or the end, as bytes: no more can be copied
	uint32_t site_count;
	uint32_t reserved;
	struct kmem_inherited_site sites[KMEM_INHERITED_SITES_MAX]; // first the largest
};

#define KMEM_TEXT_BYTES 1024

/* How a note begins that says whose malloc stands before the recorder's. */
#define KMEM_NOTE_HIDDEN_HEAP "the heap is not recorded"
/* And how it ends, where that can be mended. */
#define KMEM_NOTE_PRELOAD_FIRST "put libkmemshim.so first in LD_PRELOAD"
/* How a note ends about an interpreter whose frames are not read. */
#define KMEM_NOTE_NATIVE_ONLY "stacks are native only"
/* How the note begins that says that personal data was left out. */
#define KMEM_NOTE_PRIVATE "recorded with KMEMSHIM_PRIVATE=1"
/* And that says what else than memory was refused; a sentence without its end. */
#define KMEM_NOTE_THREAD "a thread could not be started"
#define KMEM_NOTE_PROCESS "a process could not be started"
#define KMEM_NOTE_FILES "as many files were open as may be"
#define KMEM_NOTE_CUDA "CUDA did not start"
#define KMEM_NOTE_MOVED "it was moved to another cgroup"
#define KMEM_COMMAND_BYTES 4096

/* What does not change after start (F4). */
struct kmem_identity {
	uint32_t pid;
	uint32_t parent_pid;
	uint64_t start_ticks; // field 22 of /proc/PID/stat: with the pid it names the process
	uint64_t start_realtime_ns;
	uint64_t start_monotonic_ns;
	uint32_t page_bytes;
	uint32_t uid;
	uint32_t is_first;                         // 1: started the session; 0: a descendant
	uint32_t is_forked;                        // 1: this image began by fork, not by exec
	uint32_t forked_from;                      // pid, when is_forked
	uint32_t pid_namespace;                    // inode of /proc/self/ns/pid, in which the pids here count; 0 = unknown
	struct kmem_limit limits[KMEM_LIMITS_MAX]; // those found at start
	struct kmem_kill_counters before;
	uint64_t machine_bytes;   // MemTotal
	uint64_t swap_bytes;      // SwapTotal
	uint64_t shm_bytes;       // size of /dev/shm, 0 = none
	uint32_t overcommit_mode; // /proc/sys/vm/overcommit_memory
	uint32_t cgroup_version;  // 1, 2 or 0 = none found
	char boot_id[40];
	char session[40];
	char tool_version[24];
	char executable[KMEM_TEXT_BYTES];
	char directory[KMEM_TEXT_BYTES];   // working directory at start
	char cgroup_path[KMEM_TEXT_BYTES]; // folder under /sys/fs/cgroup of this process
	char limit_path[KMEM_TEXT_BYTES];  // folder of the cgroup that owns the effective limit
	uint32_t command_bytes;
	uint32_t reserved;
	char command[KMEM_COMMAND_BYTES]; // argv, zero-separated, cut at the end
};

struct kmem_header {
	char magic[8];
	uint32_t version;
	uint32_t endian;
	uint32_t head_bytes;                // KMEM_HEAD_BYTES
	uint32_t chunk_bytes;               // KMEM_CHUNK_BYTES
	uint32_t identity_bytes;            // sizeof(struct kmem_identity)
	_Atomic uint32_t identity_checksum; // kmem_identity_checksum(); 0: the process died before it was written
	struct kmem_identity identity;

	/* Mutable from here. */
	_Alignas(64) _Atomic uint32_t state; // enum kmem_state
	_Atomic uint32_t is_finalizing;      // KMEM_YES: Python's teardown began: figures are those of that moment
	_Atomic int32_t exit_code;           // with KMEM_STATE_CLEAN_EXIT; -1 = unknown
	_Atomic uint32_t head_checksum;      // with KMEM_STATE_CLEAN_EXIT: kmem_head_checksum()
	_Atomic uint64_t ended_monotonic_ns; // with KMEM_STATE_CLEAN_EXIT
	_Atomic uint32_t chunk_count;        // valid directory entries
	_Atomic uint32_t module_version;
	// kmem_twice() of index + 1 of the newest struct kmem_module, in units of 8 bytes
	_Atomic uint64_t modules;
	_Atomic uint64_t notes;          // the same of the newest struct kmem_note
	_Atomic uint64_t cells;          // the same of the newest struct kmem_cell
	_Atomic uint64_t python_version; // kmem_twice() of 0x030b07f0 as PY_VERSION_HEX; 0 = no interpreter found
	// how far peaks may be off because threads add up small events first; 0 = exact
	_Atomic uint32_t peak_error_bytes;
	_Atomic uint32_t devices_are_hip; // KMEM_YES: in names of domains "cuda" stands for AMD's "hip"
	_Alignas(64) _Atomic uint64_t used_bytes[KMEM_SECTION_COUNT]; // append position in each section
	_Alignas(64) _Atomic uint64_t generation_clock_bytes; // the clock's own measure, of which it is kmem_clock_at()
	_Atomic uint64_t generation_clock;                    // 1 to 255
	_Atomic uint64_t verify_checked;
	_Atomic uint64_t verify_mismatched;
	_Atomic uint64_t attempt_bytes; // last request of 1 MiB and more, stored before it was passed on
	_Atomic uint64_t attempt_domain;
	_Alignas(64) _Atomic uint64_t losses[KMEM_LOSS_COUNT];
	_Alignas(64) _Atomic uint64_t failed_count;
	struct kmem_failed failed[KMEM_FAILED_MAX]; // ring by sequence
	// kmem_twice() of the valid entries of object_census[]; 0 also while they are written
	_Alignas(64) _Atomic uint64_t object_count_total;
	uint32_t object_count_checksum; // kmem_checksum() of those entries (F7)
	// KMEM_YES: a device had no memory for PyTorch, whose environment said expandable_segments:True by then
	_Atomic uint32_t has_expandable_segments;
	// kmem_checksum() of each (F7), stored last; 0 = never written, or being written
	_Atomic uint32_t heartbeat_checksums[KMEM_HEARTBEATS_MAX];
	struct kmem_object_count object_census[KMEM_OBJECT_CENSUS_MAX];
	_Alignas(64) struct kmem_launcher launcher;
	_Alignas(64) struct kmem_resident resident[2];
	_Alignas(64) struct kmem_inherited inherited;
	_Alignas(64) uint64_t own_bytes[2][KMEM_OWN_PARTS]; // of resident[0] and [1]; their sum is that part
	_Alignas(64) _Atomic uint64_t volume_bytes;         // allocated in all domains but reserved and file
	_Atomic uint64_t tick_bytes;                        // the same, of each event one tick at most
	_Atomic uint64_t tick_blocks;                       // how many events that were, times KMEM_TICK_BLOCK_BYTES
	// kmem_twice() of index + 1 of the struct kmem_exit, in units of 8 bytes; 0 = none
	_Atomic uint64_t at_exit;
	// kmem_twice() of the mean bytes between two samples of domain python/object; 0 = small objects are not sampled
	_Atomic uint64_t python_sample_bytes;
	// kmem_twice() of index + 1 of the newest struct kmem_guard, in units of 8 bytes; 0 = the guard was never passed
	_Atomic uint64_t guard;
	// kmem_rough() of volume_bytes when the clock came to this; [0] is not used
	_Atomic uint16_t volume_at[KMEM_CLOCK_MAX + 1];
	// kmem_twice() of index + 1 of each struct kmem_history, in units of 8 bytes; 0 = none yet
	_Atomic uint64_t history[KMEM_HISTORY_PARTS];
	struct kmem_container container[2]; // beside resident[0] and [1]
	_Alignas(64) struct kmem_efforts efforts;
	// kmem_twice() of the mean bytes between two samples of domain heap/sample; 0 = each block of the heap is recorded
	_Atomic uint64_t heap_sample_bytes;
};

#define KMEM_HEADER_ROOM 16384u
#define KMEM_RESIDENT_LINES_OFFSET KMEM_HEADER_ROOM                   // struct kmem_resident_lines[2]
#define KMEM_TIMELINE_OFFSET (KMEM_RESIDENT_LINES_OFFSET + 2 * 8192u) // struct kmem_timeline
#define KMEM_DOMAINS_OFFSET (KMEM_TIMELINE_OFFSET + 20480u)
#define KMEM_HEARTBEATS_OFFSET (KMEM_DOMAINS_OFFSET + KMEM_DOMAINS_MAX * 128u)
#define KMEM_DIRECTORY_OFFSET (KMEM_HEARTBEATS_OFFSET + KMEM_HEARTBEATS_MAX * 64u)
#define KMEM_HEAD_BYTES (KMEM_DIRECTORY_OFFSET + KMEM_CHUNKS_MAX * 8u)
static_assert(sizeof(struct kmem_header) <= KMEM_HEADER_ROOM, "the header fits its room");
static_assert(sizeof(struct kmem_timeline) == 20480, "five pages");
static_assert(KMEM_HEAD_BYTES % 4096 == 0, "chunks start on a page");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "counters are shared between processes");

#endif
