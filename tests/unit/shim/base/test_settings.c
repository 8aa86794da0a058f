/*
 * test_settings.c - does every variable accept what docs/settings.md promises, and say so when it does not?
 */
#include "unit.h"

#include "base/settings.h"

static const struct {
	const char *text;
	bool is_accepted;
	uint64_t bytes;
	const char *why;
} size_cases[] = {
	{ "0", true, 0, "zero is a legal limit" },
	{ "123", true, 123, "bytes" },
	{ "64k", true, 64u << 10, "suffixes are powers of two" },
	{ "64K", true, 64u << 10, "case does not matter" },
	{ "3m", true, 3u << 20, "" },
	{ "2G", true, UINT64_C(2) << 30, "" },
	{ "007", true, 7, "leading zeros are decimal" },
	{ "18446744073709551615", true, UINT64_MAX, "the largest value fits" },
	{ "17179869183g", true, UINT64_C(17179869183) << 30, "the largest number of gibibytes" },
	{ "18446744073709551616", false, 0, "overflow is refused, not wrapped" },
	{ "17179869184g", false, 0, "overflow is refused, not wrapped" },
	{ "99999999999999999999999", false, 0, "far too many digits" },
	{ "1.5g", false, 0, "no fractions" },
	{ "-1", false, 0, "no sign" },
	{ "+1", false, 0, "no sign" },
	{ " 1", false, 0, "no space" },
	{ "1MiB", true, 1u << 20, "as texts write it" },
	{ "1 MB", true, 1u << 20, "the same" },
	{ "512B", true, 512, "" },
	{ "1T", true, UINT64_C(1) << 40, "" },
	{ "1x", false, 0, "no such suffix" },
	{ "1MiBs", false, 0, "nothing behind it" },
	{ "1i", false, 0, "no unit" },
	{ "k", false, 0, "no number" },
	{ "0x10", false, 0, "decimal only" },
	{ "", false, 0, "empty is not zero" },
};

TEST(sizes_are_what_the_readme_promises)
{
	for (size_t i = 0; i < ARRAY_LEN(size_cases); i++) {
		uint64_t bytes = 12345; // must survive a refusal untouched
		bool is_accepted = kmem_parse_size(size_cases[i].text, &bytes);

		if (is_accepted != size_cases[i].is_accepted)
			print_message("\"%s\": %s\n", size_cases[i].text, size_cases[i].why);
		assert_int_equal(is_accepted, size_cases[i].is_accepted);
		assert_int_equal(bytes, is_accepted ? size_cases[i].bytes : 12345);
	}
}

/* One variable, what it sets, and what is said about it (NULL: nothing). */
struct setting_case {
	const char *variable;
	struct settings wanted;
	const char *said;
};

#define VALID \
	"; valid: OUT, SESSION, LOG, PYTHON, PYTHON_OBJECTS, NATIVE, IMPORTS, PRIVATE, EXACT_PEAK, VERIFY, CAPTURE_MAX, SITES_MAX, GUARD, GUARD_ACTION, SAMPLE, SNAPSHOTS, LOOKER, MEMORY, GUARD_PID, WRAPPERS"
#define BAD_GUARD(value) "KMEMSHIM_GUARD=" value " is not valid; use " KMEM_GUARD_WANTED " (the default is used now)"
#define BAD_ACTION(value) \
	"KMEMSHIM_GUARD_ACTION=" value " is not valid; use " KMEM_GUARD_ACTION_WANTED " (the default is used now)"
#define DEFAULTS .python = true, .sites_max = 1u << 20

static const struct setting_case setting_cases[] = {
	{ "PATH=/bin", { DEFAULTS }, NULL },
	{ "KMEMSHIM", { DEFAULTS }, NULL },
	{ "KMEMSHIM_OUT=/tmp/x", { DEFAULTS, .out = "/tmp/x" }, NULL },
	{ "KMEMSHIM_OUT=a=b", { DEFAULTS, .out = "a=b" }, NULL },
	{ "KMEMSHIM_OUT=", { DEFAULTS }, NULL },
	{ "KMEMSHIM_OUTX=/tmp/x", { DEFAULTS }, "unknown setting KMEMSHIM_OUTX" VALID },
	{ "KMEMSHIM_PYTHON_OBJECT=1", { DEFAULTS }, "unknown setting KMEMSHIM_PYTHON_OBJECT" VALID },
	{ "KMEMSHIM_=", { DEFAULTS }, "unknown setting KMEMSHIM_" VALID },
	{ "KMEMSHIM_A_NAME_THAT_IS_LONGER_THAN_ANY_SETTING\n=",
	  { DEFAULTS },
	  "unknown setting KMEMSHIM_A_NAME_THAT_IS_LONGER_THAN_ANY_SETTING?" VALID },
	{ "KMEMSHIM_SESSION=5f.12", { DEFAULTS, .session = "5f.12" }, NULL },
	{ "KMEMSHIM_SESSION=", { DEFAULTS }, NULL },
	{ "KMEMSHIM_LOG=quiet", { DEFAULTS }, NULL },
	{ "KMEMSHIM_LOG=warn", { DEFAULTS }, NULL },
	{ "KMEMSHIM_LOG=debug", { DEFAULTS }, NULL },
	{ "KMEMSHIM_LOG=loud",
	  { DEFAULTS },
	  "KMEMSHIM_LOG=loud is not valid; use quiet, warn or debug (the default is used now)" },
	{ "KMEMSHIM_LOG=", { DEFAULTS }, "KMEMSHIM_LOG= is not valid; use quiet, warn or debug (the default is used now)" },
	{ "KMEMSHIM_PYTHON=0", { .sites_max = 1u << 20 }, NULL },
	{ "KMEMSHIM_PYTHON=1", { DEFAULTS }, NULL },
	{ "KMEMSHIM_PYTHON=yes", { DEFAULTS }, "KMEMSHIM_PYTHON=yes is not valid; use 0 or 1 (the default is used now)" },
	{ "KMEMSHIM_PYTHON_OBJECTS=1", { DEFAULTS, .python_objects = SETTINGS_ON }, NULL },
	{ "KMEMSHIM_PYTHON_OBJECTS=0", { DEFAULTS, .python_objects = SETTINGS_OFF }, NULL },
	{ "KMEMSHIM_PYTHON_OBJECTS=2",
	  { DEFAULTS },
	  "KMEMSHIM_PYTHON_OBJECTS=2 is not valid; use 0 or 1 (the default is used now)" },
	{ "KMEMSHIM_NATIVE=all", { DEFAULTS, .native = SETTINGS_NATIVE_ALL }, NULL },
	{ "KMEMSHIM_NATIVE=to-python", { DEFAULTS, .native = SETTINGS_NATIVE_TO_PYTHON }, NULL },
	{ "KMEMSHIM_NATIVE=auto", { DEFAULTS }, NULL },
	{ "KMEMSHIM_NATIVE=ally",
	  { DEFAULTS },
	  "KMEMSHIM_NATIVE=ally is not valid; use auto, to-python or all (the default is used now)" },
	{ "KMEMSHIM_IMPORTS=full", { DEFAULTS, .imports_full = true }, NULL },
	{ "KMEMSHIM_IMPORTS=1",
	  { DEFAULTS },
	  "KMEMSHIM_IMPORTS=1 is not valid; use merged or full (the default is used now)" },
	{ "KMEMSHIM_VERIFY=1", { DEFAULTS, .verify_every = 1 }, NULL },
	{ "KMEMSHIM_VERIFY=0", { DEFAULTS }, NULL },
	{ "KMEMSHIM_VERIFY=-1",
	  { DEFAULTS },
	  "KMEMSHIM_VERIFY=-1 is not valid; use a number; 0 turns it off (the default is used now)" },
	{ "KMEMSHIM_GUARD=90%", { DEFAULTS, .guard = { .percent = 90 } }, NULL },
	{ "KMEMSHIM_GUARD=1%", { DEFAULTS, .guard = { .percent = 1 } }, NULL },
	{ "KMEMSHIM_GUARD=99%", { DEFAULTS, .guard = { .percent = 99 } }, NULL },
	{ "KMEMSHIM_GUARD=12G", { DEFAULTS, .guard = { .bytes = UINT64_C(12) << 30 } }, NULL },
	{ "KMEMSHIM_GUARD=512 MiB", { DEFAULTS, .guard = { .bytes = UINT64_C(512) << 20 } }, NULL },
	{ "KMEMSHIM_GUARD=0%", { DEFAULTS }, BAD_GUARD("0%") },
	{ "KMEMSHIM_GUARD=100%", { DEFAULTS }, BAD_GUARD("100%") },
	{ "KMEMSHIM_GUARD=4294967386%", { DEFAULTS }, BAD_GUARD("4294967386%") },
	{ "KMEMSHIM_GUARD=%", { DEFAULTS }, BAD_GUARD("%") },
	{ "KMEMSHIM_GUARD=12", { DEFAULTS }, BAD_GUARD("12") },
	{ "KMEMSHIM_GUARD=4096B", { DEFAULTS }, BAD_GUARD("4096B") },
	{ "KMEMSHIM_GUARD=much", { DEFAULTS }, BAD_GUARD("much") },
	{ "KMEMSHIM_GUARD=", { DEFAULTS }, BAD_GUARD("") },
	{ "KMEMSHIM_GUARD_ACTION=note", { DEFAULTS }, NULL },
	{ "KMEMSHIM_GUARD_ACTION=interrupt", { DEFAULTS, .guard_action = KMEM_GUARD_INTERRUPT }, NULL },
	{ "KMEMSHIM_GUARD_ACTION=raise", { DEFAULTS, .guard_action = KMEM_GUARD_RAISE }, NULL },
	{ "KMEMSHIM_GUARD_ACTION=exec:py-spy dump", { DEFAULTS, .guard_action = KMEM_GUARD_EXEC }, NULL },
	{ "KMEMSHIM_GUARD_ACTION=exec:", { DEFAULTS }, BAD_ACTION("exec:") },
	{ "KMEMSHIM_GUARD_ACTION=kill", { DEFAULTS }, BAD_ACTION("kill") },
	{ "KMEMSHIM_SITES_MAX=64", { .python = true, .sites_max = 64 }, NULL },
	{ "KMEMSHIM_SITES_MAX=2m", { .python = true, .sites_max = 1u << 21 }, NULL },
	{ "KMEMSHIM_SITES_MAX=63",
	  { DEFAULTS },
	  "KMEMSHIM_SITES_MAX=63 is not valid; use a number from 64 to 2M (the default is used now)" },
	{ "KMEMSHIM_SITES_MAX=2097153",
	  { DEFAULTS },
	  "KMEMSHIM_SITES_MAX=2097153 is not valid; use a number from 64 to 2M (the default is used now)" },
	{ "KMEMSHIM_SITES_MAX=a\nb",
	  { DEFAULTS },
	  "KMEMSHIM_SITES_MAX=a?b is not valid; use a number from 64 to 2M (the default is used now)" },
};

static bool
is_same_text(const char *one, const char *other)
{
	return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

static int
parses(void *context)
{
	const struct setting_case *which = context;
	char *environment[] = { (char *)"HOME=/", (char *)which->variable, (char *)"LANG=C", NULL };

	settings_parse(environment);
	CHECK_IN_CHILD(is_same_text(settings.out, which->wanted.out));
	CHECK_IN_CHILD(is_same_text(settings.session, which->wanted.session));
	CHECK_IN_CHILD(diag_level == (strcmp(which->variable, "KMEMSHIM_LOG=quiet") == 0   ? DIAG_QUIET
	                              : strcmp(which->variable, "KMEMSHIM_LOG=debug") == 0 ? DIAG_DEBUG
	                                                                                   : DIAG_WARN));
	CHECK_IN_CHILD(settings.python == which->wanted.python);
	CHECK_IN_CHILD(settings.python_objects == which->wanted.python_objects);
	CHECK_IN_CHILD(settings.guard.percent == which->wanted.guard.percent);
	CHECK_IN_CHILD(settings.guard.bytes == which->wanted.guard.bytes);
	CHECK_IN_CHILD(settings.guard_action == which->wanted.guard_action);
	CHECK_IN_CHILD(settings.native == which->wanted.native);
	CHECK_IN_CHILD(settings.imports_full == which->wanted.imports_full);
	CHECK_IN_CHILD(settings.verify_every == which->wanted.verify_every);
	CHECK_IN_CHILD(settings.sites_max == which->wanted.sites_max);
	return 0;
}

TEST(each_variable_sets_its_field_or_is_named_in_one_line)
{
	char text[1024];
	char wanted[1024];

	for (size_t i = 0; i < ARRAY_LEN(setting_cases); i++) {
		wanted[0] = '\0';
		if (setting_cases[i].said != NULL)
			snprintf(wanted, sizeof(wanted), "kmemshim: %s\n", setting_cases[i].said);
		assert_int_equal(in_child_telling(parses, (void *)&setting_cases[i], text, sizeof(text)), 0);
		assert_string_equal(text, wanted);
	}
}

static int
parses_quietly(void *unused)
{
	char *environment[] = { (char *)"KMEMSHIM_SITES_MAX=none", (char *)"KMEMSHIM_LOG=quiet", NULL };

	settings_parse(environment);
	CHECK_IN_CHILD(diag_level == DIAG_QUIET);
	return 0;
}

TEST(quiet_holds_for_variables_that_stand_before_it)
{
	char text[1024];

	assert_int_equal(in_child_telling(parses_quietly, NULL, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

TEST(no_environment_is_all_defaults)
{
	char *empty[] = { NULL };

	settings_parse(NULL);
	settings_parse(empty);
	assert_null(settings.out);
	assert_int_equal(settings.sites_max, 1u << 20);
}

RUN_TESTS(NULL, NULL)
