/*
 * settings.c - one table of KMEMSHIM_* variables (see settings.h).
 *
 * A new setting is one row here, one field in settings.h and one line in docs/settings.md.
 */
#include "base/settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/raw_sys.h"
#include "kmem_words.h"

struct settings settings = {
	.python = true,
	.sites_max = 1u << 20,
};

static bool
parse_text(const char *value, void *field)
{
	if (*value != '\0')
		*(const char **)field = value;
	return true;
}

/* Not ours: it is there for a program that runs under us. */
static bool
parse_ignored(const char *value, void *field)
{
	(void)value;
	(void)field;
	return true;
}

static bool
parse_log(const char *value, void *field)
{
	static const char *const names[] = { "quiet", "warn", "debug" }; // in the order of enum diag_level

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(value, names[i]) == 0) {
			*(enum diag_level *)field = (enum diag_level)i;
			return true;
		}
	}
	return false;
}

static bool
parse_switch(const char *value, void *field)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return false;
	*(bool *)field = *value == '1';
	return true;
}

static bool
parse_choice(const char *value, void *field)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return false;
	*(enum settings_choice *)field = *value == '1' ? SETTINGS_ON : SETTINGS_OFF;
	return true;
}

static bool
parse_native(const char *value, void *field)
{
	static const char *const words[] = { "auto", "to-python", "all" }; // in the order of enum settings_native

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(value, words[i]) == 0) {
			*(enum settings_native *)field = (enum settings_native)i;
			return true;
		}
	}
	return false;
}

static bool
parse_full(const char *value, void *field)
{
	if (strcmp(value, "full") != 0 && strcmp(value, "merged") != 0)
		return false;
	*(bool *)field = *value == 'f';
	return true;
}

static bool
parse_size(const char *value, void *field)
{
	return kmem_parse_size(value, field);
}

static bool
parse_sites(const char *value, void *field)
{
	uint64_t count;

	if (!kmem_parse_size(value, &count) || count < 64 || count > 1u << 21)
		return false;
	*(uint64_t *)field = count;
	return true;
}

static bool
parse_capture(const char *value, void *field)
{
	uint64_t bytes;

	if (!kmem_parse_size(value, &bytes) || bytes < 1u << 20)
		return false;
	*(uint64_t *)field = bytes;
	return true;
}

/* For others who read the environment. */
static bool
parse_nothing(const char *value, void *field)
{
	(void)value;
	(void)field;
	return true;
}

static bool
parse_guard(const char *value, void *field)
{
	return kmem_parse_guard(value, field);
}

static bool
parse_guard_action(const char *value, void *field)
{
	const char *command; // the launcher's, not ours

	return kmem_parse_guard_action(value, field, &command);
}

static const struct {
	const char *name; // after "KMEMSHIM_"
	bool (*parse)(const char *value, void *field);
	void *field;
	const char *wanted; // NULL = nobody sets it by hand
} table[] = {
	{ "OUT", parse_text, &settings.out, "a folder" },
	{ "SESSION", parse_text, &settings.session, "an id" },
	{ "LOG", parse_log, &diag_level, "quiet, warn or debug" },
	{ "PYTHON", parse_switch, &settings.python, "0 or 1" },
	{ "PYTHON_OBJECTS", parse_choice, &settings.python_objects, "0 or 1" },
	{ "NATIVE", parse_native, &settings.native, "auto, to-python or all" },
	{ "IMPORTS", parse_full, &settings.imports_full, "merged or full" },
	{ "PRIVATE", parse_switch, &settings.is_private, "0 or 1" },
	{ "EXACT_PEAK", parse_switch, &settings.exact, "0 or 1" },
	{ "VERIFY", parse_size, &settings.verify_every, "a number; 0 turns it off" },
	{ "CAPTURE_MAX", parse_capture, &settings.capture_max, "bytes, at least 1M" },
	{ "SITES_MAX", parse_sites, &settings.sites_max, "a number from 64 to 2M" },
	{ "KERNEL", parse_nothing, NULL, NULL }, // these three: from the launcher of a kernel to its extension
	{ "COMMAND", parse_nothing, NULL, NULL },
	{ "PREVIOUS", parse_nothing, NULL, NULL },
	{ "GUARD", parse_guard, &settings.guard, KMEM_GUARD_WANTED },
	{ "GUARD_ACTION", parse_guard_action, &settings.guard_action, KMEM_GUARD_ACTION_WANTED },
	{ "GUARD_PID", parse_ignored, NULL, "" },
	{ "WRAPPERS", parse_text, &settings.wrappers, "names of functions" },
};

static void
say_unknown(const char *name)
{
	char given[40];
	char known[240];
	size_t length = strcspn(name, "=") + 1;
	size_t end = 0;

	diag_format(given, length < sizeof(given) ? length : sizeof(given), "%s", name);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].wanted != NULL)
			end += diag_format(known + end, sizeof(known) - end, end == 0 ? "%s" : ", %s", table[i].name);
	}
	diag_warn("unknown setting KMEMSHIM_%s; valid: %s", given, known);
}

static void
parse_one(const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t length = strlen(table[i].name);

		if (strncmp(name, table[i].name, length) != 0 || name[length] != '=')
			continue;
		if (!table[i].parse(value, table[i].field))
			diag_warn("KMEMSHIM_%s=%s is not valid; use %s (the default is used now)", table[i].name, value,
			          table[i].wanted);
		return;
	}
	say_unknown(name);
}

static void
parse_all(char *const *envp, bool is_log)
{
	static const char prefix[] = "KMEMSHIM_";

	for (; envp != NULL && *envp != NULL; envp++) {
		const char *name = *envp + sizeof(prefix) - 1;
		const char *value;

		if (strncmp(*envp, prefix, sizeof(prefix) - 1) == 0 && (value = strchr(name, '=')) != NULL &&
		    (strncmp(name, "LOG=", 4) == 0) == is_log)
			parse_one(name, value + 1);
	}
}

void
settings_parse(char *const *envp)
{
	parse_all(envp, true); // how much may be said holds for messages about the others
	parse_all(envp, false);
	settings.walks_all = settings.native == SETTINGS_NATIVE_ALL || settings.verify_every != 0;
}

bool
settings_session_is_of(const char *session, uint32_t pid)
{
	char suffix[16];
	size_t length = diag_format(suffix, sizeof(suffix), ".%u", pid);
	size_t whole = strcspn(session, SETTINGS_SESSION_REFUSED);

	return whole > length && memcmp(session + whole - length, suffix, length) == 0;
}

bool
settings_is_descendant(void)
{
	const char *session = getenv("KMEMSHIM_SESSION");

	return session != NULL && !settings_session_is_of(session, (uint32_t)raw_syscall(SYS_getpid));
}
