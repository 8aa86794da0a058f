/*
 * kmem_words.h - the few computations that recorder and reader must do alike.
 *
 * Called by both sides; safe anywhere: no state, no calls.
 */
#ifndef KMEM_WORDS_H
#define KMEM_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kmem_format.h"

#define KMEM_PEAK_BYTES_MASK ((UINT64_C(1) << 48) - 1)
#define KMEM_CHECKSUM_START UINT32_C(2166136261)

static inline uint64_t
kmem_peak_now(struct kmem_peak_word word)
{
	return word.now & KMEM_PEAK_BYTES_MASK;
}

/* A domain's `now` may be below 0 for a moment: one thread's release is added before another's allocation. */
static inline int64_t
kmem_peak_now_signed(struct kmem_peak_word word)
{
	return (int64_t)(word.now << 16) >> 16;
}

static inline uint64_t
kmem_peak_mark(struct kmem_peak_word word)
{
	return word.mark & KMEM_PEAK_BYTES_MASK;
}

static inline uint32_t
kmem_peak_epoch(struct kmem_peak_word word)
{
	return (uint32_t)(word.now >> 48) | (uint32_t)(word.mark >> 48) << 16;
}

static inline struct kmem_peak_word
kmem_peak_pack(uint64_t now, uint64_t mark, uint32_t epoch)
{
	return (struct kmem_peak_word){
		.now = (now & KMEM_PEAK_BYTES_MASK) | (uint64_t)(epoch & 0xffff) << 48,
		.mark = (mark & KMEM_PEAK_BYTES_MASK) | (uint64_t)(epoch >> 16) << 48,
	};
}

/* Highest live bytes of a domain. */
static inline uint64_t
kmem_domain_peak_bytes(struct kmem_peak_word domain)
{
	int64_t now = kmem_peak_now_signed(domain);
	int64_t mark = (int64_t)kmem_peak_mark(domain);

	return (uint64_t)(now > mark ? now : mark);
}

/* What a site held when its domain was at its highest; see shim/peak.c for why. */
static inline uint64_t
kmem_site_peak_bytes(struct kmem_peak_word domain, struct kmem_peak_word site)
{
	if (kmem_peak_now_signed(domain) > (int64_t)kmem_peak_mark(domain))
		return kmem_peak_now(site);
	return kmem_peak_epoch(site) == kmem_peak_epoch(domain) ? kmem_peak_mark(site) : kmem_peak_now(site);
}

/*
 * FNV-1a, 32 bits: every step is a bijection of the state, so no single changed byte goes unseen. Start
 * with KMEM_CHECKSUM_START; the result of one call may be the start of the next.
 *
 * A byte of 0 only multiplies, so runs of them are taken in one step each: captures of small processes are mostly that,
 * and 96 KiB byte by byte are 0.13 ms at the end of every program.
 */
#define KMEM_CHECKSUM_PRIME UINT32_C(16777619)
#define KMEM_CHECKSUM_ZEROS_8 UINT32_C(0x5d615f21)   // the prime to the 8th, and to the 64th
#define KMEM_CHECKSUM_ZEROS_64 UINT32_C(0x669c6901)

static inline uint32_t
kmem_checksum(uint32_t state, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;

	while (count >= 8) {
		uint64_t words[8];

		if (count >= 64) {
			memcpy(words, at, 64);
			if ((words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7]) == 0) {
				state *= KMEM_CHECKSUM_ZEROS_64;
				at += 64;
				count -= 64;
				continue;
			}
		}
		memcpy(words, at, 8);
		for (unsigned i = 0; words[0] != 0 && i < 8; i++)
			state = (state ^ at[i]) * KMEM_CHECKSUM_PRIME;
		if (words[0] == 0)
			state *= KMEM_CHECKSUM_ZEROS_8;
		at += 8;
		count -= 8;
	}
	for (size_t i = 0; i < count; i++)
		state = (state ^ at[i]) * KMEM_CHECKSUM_PRIME;
	return state;
}

#endif
