/*
 * capture_fixture.h - a folder for one test's captures, and sites to put into them.
 */
#ifndef CAPTURE_FIXTURE_H
#define CAPTURE_FIXTURE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "capture_check.h"

static char folder[64];
static char path[128]; // of the capture "name" in it

SETUP(make_folder)
{
	capture_file_forked();
	strcpy(folder, "/tmp/kmemshim-unit-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/name.kmem", folder);
}

SETUP(remove_folder)
{
	char each[512];
	struct dirent *entry;

	capture_file_forked();
	DIR *list = opendir(folder);
	while (list != NULL && (entry = readdir(list)) != NULL) {
		snprintf(each, sizeof(each), "%s/%s", folder, entry->d_name);
		remove(each);
	}
	if (list != NULL)
		closedir(list);
	assert_int_equal(rmdir(folder), 0);
}

/* A stack and a site that leads to it, the way site_table.c does it (F1). 0 = no room. */
static inline uint32_t
append_site(uint64_t number)
{
	const uint32_t frames = (uint32_t)(number % 19);
	uint32_t stack_index;
	uint32_t index;
	struct kmem_stack *stack = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*stack) + frames * 8, &stack_index);
	struct kmem_site *site;

	if (stack == NULL || (site = capture_file_append(KMEM_SECTION_SITES, sizeof(*site), &index)) == NULL)
		return 0;
	stack->record.type = KMEM_RECORD_STACK;
	stack->record.bytes = (uint32_t)(sizeof(*stack) + frames * 8);
	stack->frame_count = frames;
	for (uint32_t i = 0; i < frames; i++)
		stack->frames[i] = number;
	capture_file_seal_record(&stack->record);
	site->allocated_bytes = number;
	atomic_store_explicit(&site->stack, stack_index + 1, memory_order_release);
	return index + 1;
}

static inline void
write_file(const char *at, const char *text)
{
	FILE *file = fopen(at, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static inline void
assert_file_says(const char *at, const char *text)
{
	char found[64] = "";
	FILE *file = fopen(at, "r");

	assert_non_null(file);
	assert_non_null(fgets(found, sizeof(found), file));
	fclose(file);
	assert_string_equal(found, text);
}

#endif
