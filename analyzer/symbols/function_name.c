/*
 * function_name.c - what is this function called (see function_name.h)?
 *
 * Demangling is libiberty's; its recursion is bounded, so hostile names are no danger.
 */
#include "symbols/function_name.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ".part.0", ".constprop.1", ".isra.0", ".cold", ".lto_priv.0", ".llvm.123": copies of the same source function. */
static void
cut_copy_suffix(char *name)
{
	static const char *const suffixes[] = { ".part.",    ".constprop.", ".isra.",      ".cold",
		                                    ".lto_priv", ".llvm.",      ".localalias", ".clone." };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *found = strstr(name + (name[0] != '\0'), suffixes[i]);

		if (found != NULL)
			*found = '\0';
	}
}

char *
function_name_readable(const char *symbol)
{
	char *plain = memory_text(symbol);
	char *readable;
	char *version = strchr(plain + (plain[0] != '\0'), '@');
	char *clone;

	if (version != NULL)
		*version = '\0';
	cut_copy_suffix(plain);
	readable = cplus_demangle(plain, DMGL_AUTO);
	if (readable == NULL)
		return plain;
	free(plain);
	clone = strstr(readable, " [clone ");
	if (clone != NULL)
		*clone = '\0';
	return readable;
}
