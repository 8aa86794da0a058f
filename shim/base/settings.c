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
	.object_sample_bytes = KMEM_PYTHON_SAMPLE_BYTES,
};

struct setting {
	const char *name;                                                // after "KMEMSHIM_"
	bool (*parse)(const struct setting *setting, const char *value); // NULL = for others who read the environment
	void *field;
	const char *wanted; // NULL = nobody sets it by hand
	uint64_t least;     // of a number
	uint64_t most;
};

static bool
parse_text(const struct setting *setting, const char *value)
{
	if (*value != '\0')
		*(const char **)setting->field = value;
	return true;
}

/* Which of the words of `wanted`, from 0; -1 = none. */
static int
word_of(const struct setting *setting, const char *value)
{
	const char *word = setting->wanted;
	size_t length = strlen(value);

	for (int i = 0; *word != '\0'; i++) {
		size_t bytes = strcspn(word, ", ");

		if (bytes == length && memcmp(word, value, bytes) == 0)
			return i;
		word += bytes + strspn(word + bytes, ", ");
		word += strncmp(word, "or ", 3) == 0 ? 3 : 0;
	}
	return -1;
}

static bool
parse_switch(const struct setting *setting, const char *value)
{
	int word = word_of(setting, value);

	if (word >= 0)
		*(bool *)setting->field = word == 1;
	return word >= 0;
}

static bool
parse_protection(const struct setting *setting, const char *value)
{
	*(bool *)setting->field = kmem_is_wanted(value);
	return true;
}

/* An enumeration of the words in their order. */
static bool
parse_word(const struct setting *setting, const char *value)
{
	int word = word_of(setting, value);

	if (word >= 0)
		*(unsigned *)setting->field = (unsigned)word;
	return word >= 0;
}

static bool
parse_choice(const struct setting *setting, const char *value)
{
	int word = word_of(setting, value);

	if (word >= 0)
		*(enum settings_choice *)setting->field = word == 1 ? SETTINGS_ON : SETTINGS_OFF;
	return word >= 0;
}

static bool
parse_number(const struct setting *setting, const char *value)
{
	uint64_t number;

	if (!kmem_parse_size(value, &number) || number < setting->least || number > setting->most)
		return false;
	*(uint64_t *)setting->field = number;
	return true;
}

static bool
parse_guard(const struct setting *setting, const char *value)
{
	return kmem_parse_guard(value, setting->field);
}

static bool
parse_sample(const struct setting *setting, const char *value)
{
	return kmem_parse_sample(value, setting->field);
}

static bool
parse_guard_action(const struct setting *setting, const char *value)
{
	const char *command; // the launcher's, not ours

	return kmem_parse_guard_action(value, setting->field, &command);
}

static const struct setting table[] = {
	{ "OUT", parse_text, &settings.out, .wanted = "a folder" },
	{ "SESSION", parse_text, &settings.session, .wanted = "an id" },
	{ "LOG", parse_word, &diag_level, .wanted = "quiet, warn or debug" },
	{ "PYTHON", parse_switch, &settings.python, .wanted = "0 or 1" },
	{ "PYTHON_OBJECTS", parse_choice, &settings.python_objects, .wanted = "0 or 1" },
	{ "NATIVE", parse_word, &settings.native, .wanted = "auto, to-python or all" },
	{ "IMPORTS", parse_switch, &settings.imports_full, .wanted = "merged or full" },
	{ "PRIVATE", parse_protection, &settings.is_private, .wanted = "0 or 1" },
	{ "EXACT_PEAK", parse_switch, &settings.exact, .wanted = "0 or 1" },
	{ "VERIFY", parse_number, &settings.verify_every, "a number; 0 turns it off", 0, UINT64_MAX },
	{ "CAPTURE_MAX", parse_number, &settings.capture_max, "bytes, at least 1M", 1u << 20, UINT64_MAX },
	{ "SITES_MAX", parse_number, &settings.sites_max, "a number from 64 to 2M", 64, 1u << 21 },
	{ .name = "KERNEL" }, // these three: from the launcher of a kernel to its extension
	{ .name = "COMMAND" },
	{ .name = "PREVIOUS" },
	{ "GUARD", parse_guard, &settings.guard, .wanted = KMEM_GUARD_WANTED },
	{ "GUARD_ACTION", parse_guard_action, &settings.guard_action, .wanted = KMEM_GUARD_ACTION_WANTED },
	{ "SAMPLE", parse_sample, &settings.sample_bytes, .wanted = KMEM_SAMPLE_WANTED },
	{ "SNAPSHOTS", parse_number, &settings.snapshots, "a number from 2 to 32", 2, KMEM_SNAPSHOTS_EVEN },
	{ "LOOKER", parse_number, &settings.looker_pid, .wanted = "", 1, INT32_MAX }, // from the launcher
	{ "MEMORY", parse_text, &settings.memory, .wanted = "" },                     // from the launcher
	{ .name = "GUARD_PID", .wanted = "" },                                        // for a program that runs under us
	{ "WRAPPERS", parse_text, &settings.wrappers, .wanted = "names of functions" },
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
		if (table[i].parse != NULL && !table[i].parse(&table[i], value))
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
	settings.is_private = settings.is_private ||
	                      (settings.session != NULL && strchr(settings.session, SETTINGS_SESSION_PRIVATE[0]) != NULL);
	if (settings.sample_bytes != 0 && settings.python_objects == SETTINGS_ON) {
		diag_warn("KMEMSHIM_SAMPLE: small Python objects are sampled, too; KMEMSHIM_PYTHON_OBJECTS=1 is ignored");
		settings.python_objects = SETTINGS_AUTO;
	}
	settings.walks_all = settings.native == SETTINGS_NATIVE_ALL || settings.verify_every != 0;
	if (settings.sample_bytes > settings.object_sample_bytes)
		settings.object_sample_bytes = settings.sample_bytes;
	settings.slow_below = settings.walks_all ? UINT64_MAX : settings.sample_bytes;
}

bool
settings_session_is_of(const char *session, uint32_t pid)
{
	char suffix[16];
	size_t length = diag_format(suffix, sizeof(suffix), ".%u", pid);
	size_t whole = strcspn(session, SETTINGS_SESSION_MARKS);

	return whole > length && memcmp(session + whole - length, suffix, length) == 0;
}

bool
settings_is_descendant(void)
{
	const char *session = getenv("KMEMSHIM_SESSION");

	return session != NULL && !settings_session_is_of(session, (uint32_t)raw_syscall(SYS_getpid));
}
