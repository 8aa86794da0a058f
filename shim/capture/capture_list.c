/*
 * capture_list.c - what is reached from the header: names of domains; lists of modules, cells and notes (see capture_file.h).
 */
#include "capture/capture_file.h"

#include <stdatomic.h>
#include <string.h>

#include "base/diag.h"
#include "kmem_words.h"

uint32_t
capture_file_link(_Atomic uint64_t *list, uint32_t index)
{
	struct kmem_record *record = capture_file_at(KMEM_SECTION_RECORDS, index);
	uint64_t newest = atomic_load_explicit(list, memory_order_relaxed); // twice (F6)

	do {
		uint32_t previous = (uint32_t)newest;

		if (previous > index) { // another thread linked a later record meanwhile: a later copy of ours, then
			struct kmem_record *copy = capture_file_append(KMEM_SECTION_RECORDS, record->bytes, &index);

			if (copy == NULL)
				return index; // not in the list: the report lacks it
			memcpy(copy, record, record->bytes);
			record = copy;
		}
		record->previous = previous;
		capture_file_seal_record(record);
		/* release: the record before the index that leads to it (F1). Pairs with the reader's acquire. */
	} while (!atomic_compare_exchange_weak_explicit(list, &newest, kmem_twice(index + 1), memory_order_release,
	                                                memory_order_relaxed));
	return index;
}

void
capture_file_note(const char *text)
{
	size_t length = strlen(text);
	uint32_t index;
	struct kmem_note *note = capture_file_append_sparing(KMEM_SECTION_RECORDS, sizeof(*note) + length, 0, &index);

	if (note == NULL)
		return;
	note->record.type = KMEM_RECORD_NOTE;
	note->record.bytes = (uint32_t)(sizeof(*note) + length);
	note->text_bytes = (uint32_t)length;
	memcpy(note + 1, text, length);
	capture_file_link(&capture_file_header()->notes, index);
}

void
capture_file_name_domains(void)
{
	static const char *const names[] = { "heap",   "mmap",        "reserved",     "file",
		                                 "shared", "cuda/pinned", "cuda/managed", "python/arena" };
	static const char *const late_names[] = { "cuda/registered", "cuda/imported", "cuda/graph",
		                                      "library",         "python/object", "heap/sample" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		diag_format(capture_file_domain(i)->name, sizeof(capture_file_domain(i)->name), "%s", names[i]);
	for (unsigned i = KMEM_DOMAIN_CUDA_FIRST; i <= KMEM_DOMAIN_CUDA_LAST; i++)
		diag_format(capture_file_domain(i)->name, sizeof(capture_file_domain(i)->name), "cuda:%u",
		            i - KMEM_DOMAIN_CUDA_FIRST);
	for (unsigned i = KMEM_DOMAIN_TENSORS_FIRST; i <= KMEM_DOMAIN_TENSORS_LAST; i++)
		diag_format(capture_file_domain(i)->name, sizeof(capture_file_domain(i)->name), "cuda:%u/tensors",
		            i - KMEM_DOMAIN_TENSORS_FIRST);
	for (unsigned i = 0; i < sizeof(late_names) / sizeof(late_names[0]); i++)
		diag_format(capture_file_domain(KMEM_DOMAIN_CUDA_REGISTERED + i)->name, sizeof(capture_file_domain(0)->name),
		            "%s", late_names[i]);
}
