/*
 * doctor_elf.h - what does a program or library need, and where are its debug symbols?
 *
 * When failing  a file that cannot be read needs nothing, and has none.
 */
#ifndef DOCTOR_ELF_H
#define DOCTOR_ELF_H

#include <stdbool.h>
#include <stdint.h>

#define DOCTOR_NAME_BYTES 128

struct doctor_elf {
	uint64_t size_bytes;
	char cuda_runtime[DOCTOR_NAME_BYTES]; // "libcudart.so.12", which it needs; "" = it does not
	bool needs_cuda_driver;               // libcuda.so.1
	bool has_debug_symbols;               // in itself or in a file that is here
	char build_id[2 * 64 + 1];            // "" = none
};

/* False: it is no ELF file. */
bool doctor_elf_read(const char *path, struct doctor_elf *elf);

/*
 * Is there this text in the file? Not looked for in those that are larger than 256 MiB.
 *
 * behind   out: what follows up to a zero byte; NULL = not wanted
 */
bool doctor_elf_has_text(const char *path, const char *text, char behind[DOCTOR_NAME_BYTES]);

#endif
