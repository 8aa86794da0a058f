/*
 * capture_seal.c - checksums over a whole capture (see capture_seal.h).
 *
 * Threads run on while a program exits. Why a sealed file is what it says, in the order of things:
 *   E1  the tracker is off before anything else: no event begins after that (lifecycle.c, L3). Events that have begun go on.
 *   E2  the growth lock is taken and never given back, sections say that they are stuck: no thread maps a part of the file after
 *       that, and none appends to the directory. A growth that outlasts our patience keeps the lock: then nothing is sealed.
 *   E3  then every mapping of the file becomes a private copy of it, at the same address: what a late event writes
 *       afterwards stays in this process. A write is before the exchange of its page, then it is in the file; or behind, then it
 *       is not. One event may be torn by that, as by SIGKILL.
 *   E4  then, and only then, the checksums are computed, from a mapping of the file made for that. So nobody writes what
 *       has been summed, and no event needs to look whether there is a seal.
 *   E5  each chunk's seal is stored after its checksum, the head's checksum last of all. A program killed in between leaves
 *       some chunks sealed and no head_checksum: the reader checks those chunks and says that the program was stopped.
 *   E6  forked children never write the file (lifecycle.c, L1), nor do vfork's (L2). The launcher writes its own parts at any time, under
 *       checksums of their own: its section gets none from here.
 *
 * Not chosen  a seal that the first later event breaks: each event would have to look.
 */
#include "capture/capture_seal.h"

#include <stdatomic.h>
#include <stddef.h>

#include "kmem_words.h"

static void
seal_chunks(char *file, uint32_t count)
{
	struct kmem_chunk *chunks = (struct kmem_chunk *)(void *)(file + KMEM_DIRECTORY_OFFSET);

	for (uint32_t i = 0; i < count; i++) {
		const char *at = file + KMEM_HEAD_BYTES + (size_t)i * KMEM_CHUNK_BYTES;

		if (chunks[i].section == KMEM_SECTION_HOLDERS)
			continue;
		atomic_store_explicit(&chunks[i].checksum, kmem_checksum(KMEM_CHECKSUM_START, at, KMEM_CHUNK_BYTES),
		                      memory_order_relaxed);                          // relaxed: the seal publishes it
		atomic_store_explicit(&chunks[i].is_sealed, 1, memory_order_release); // the checksum first (E5)
	}
}

void
capture_seal(char *file, uint32_t chunk_count)
{
	struct kmem_header *head = (struct kmem_header *)(void *)file;

	seal_chunks(file, chunk_count);
	atomic_store_explicit(&head->head_checksum, kmem_head_checksum(file), memory_order_release); // E5
}
