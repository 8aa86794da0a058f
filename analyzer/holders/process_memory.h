/*
 * process_memory.h - the memory of another process, as words.
 *
 * Reading goes through a few thousand remembered pages (PROCESS_MEMORY_CACHE_BYTES at most). The process must stand still, or what is
 * read may be of different moments. Where the bytes come from is a function: of a live process, of an image that a test made, of a
 * core file.
 *
 * When failing  what cannot be read is 0, or nothing.
 */
#ifndef PROCESS_MEMORY_H
#define PROCESS_MEMORY_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fail.h"
#include "holders/data_pages.h"

#define PROCESS_MEMORY_PAGE 4096u
#define PROCESS_MEMORY_CACHE_BYTES (UINT64_C(12) << 20)
#define PROCESS_MEMORY_AHEAD 64u
#define PROCESS_MEMORY_PIECE (UINT64_C(256) << 10) // that a scan reads at once

struct word_range {
	uint64_t lowest;
	uint64_t end;
};

struct memory_region {
	uint64_t start;
	uint64_t end;
	uint64_t offset; // in the file
	bool is_readable;
	bool is_writable;
	bool is_executable;
	bool is_shared;
	const char *path; // as /proc/PID/maps has it: "" = of no file
};

struct process_memory {
	size_t region_count;
	struct memory_region *regions; // by address
	/* Bytes that could be read from `addr` on; fewer than asked for where something ends. */
	size_t (*fetch)(void *context, uint64_t addr, void *to, size_t bytes);
	/* The first run of pages in [*start, end) that are there: changes *start, returns its end; *start = end: none is. NULL: all are. */
	uint64_t (*present)(void *context, uint64_t *start, uint64_t end);
	/* Reads several pages at once. Returns how many of them, from the first on, are whole. NULL: pages are read one by one. */
	size_t (*fetch_pages)(void *context, const uint64_t *addrs, unsigned char *const *to, size_t count);
	void *context;
	struct memory_page *pages; // NULL until the first read
	uint64_t *piece;           // of scans
	/* While the process stands still: all that scans look for lies here. A page without a word of it is not read again. 0 = not known. */
	struct word_range pointers;
	struct data_pages data;
	uint64_t scanned_bytes;
	uint64_t deadline_ns; // CLOCK_MONOTONIC: who reads much gives up then; 0 = there is time
};

bool process_memory_is_late(const struct process_memory *memory);

/* Of a live process. */
bool process_memory_open(const char *command, pid_t pid, struct process_memory *memory, struct fail *fail);
void process_memory_close(struct process_memory *memory);
/* The process stands still from here on: pages without a pointer into its regions are read once. */
void process_memory_stands_still(struct process_memory *memory);

/* For small things; large ones are scanned. False: not all of it can be read; the rest is 0. */
bool process_memory_read(struct process_memory *memory, uint64_t addr, void *to, size_t bytes);
uint64_t process_memory_word(struct process_memory *memory, uint64_t addr);
uint32_t process_memory_half(struct process_memory *memory, uint64_t addr);
/* A text up to its terminator, cut where `room` ends. What cannot be shown is replaced (text_clean.h). False: there is no text. */
bool process_memory_text(struct process_memory *memory, uint64_t addr, char *text, size_t room);

/* A program header of the ELF image that begins there. False: there is none of this number. */
bool process_memory_header(struct process_memory *memory, uint64_t image, unsigned number, Elf64_Phdr *part);

/* Reads pages that will be asked for, at most PROCESS_MEMORY_AHEAD. It costs less than reading them one by one. */
void process_memory_ahead(struct process_memory *memory, const uint64_t *addrs, size_t count);

/*
 * Shows the aligned words of [start, end) that are there and may be wanted. Words outside of `wanted` are left out where that is cheap.
 * False when the visitor ended it, or when there is no time for more.
 */
typedef bool process_memory_visitor(void *context, uint64_t at, uint64_t word);
bool process_memory_scan(struct process_memory *memory, uint64_t start, uint64_t end, struct word_range wanted,
                         process_memory_visitor *visitor, void *context);

#endif
