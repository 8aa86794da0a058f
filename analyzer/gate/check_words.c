/* check_words.c - see check_words.h. */
#include "gate/check_words.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

const struct check_rule_text check_rule_texts[] = {
	{ "ended", "The program must not be killed and must not fail." },
	{ "leak", "A line must not keep more blocks in each round." },
	{ "grown", "A new line must not keep most of what it allocates." },
	{ "line", "A line must not hold more at the end than the baseline allows." },
	{ "live", "A domain must not hold more at the end than the baseline allows." },
	{ "peak", "A domain must not hold more at its peak than the baseline allows." },
};
const size_t check_rule_text_count = sizeof(check_rule_texts) / sizeof(check_rule_texts[0]);

const char *
check_message(const struct check_rule *rule, char message[CHECK_MESSAGE_BYTES])
{
	char before[UNITS_TEXT_BYTES];
	char after[UNITS_TEXT_BYTES];
	char limit[UNITS_TEXT_BYTES];

	(void)snprintf(message, CHECK_MESSAGE_BYTES,
	               "%s of %s rose from %s to %s, allowed %s (%" PRIu64 ", %" PRIu64 ", %" PRIu64 " bytes)%s%s%s%s",
	               rule->kind == CHECK_PEAK ? "peak" : "live bytes", rule->domain,
	               units_bytes(rule->before_bytes, before), units_bytes(rule->after_bytes, after),
	               units_bytes(rule->limit_bytes, limit), rule->before_bytes, rule->after_bytes, rule->limit_bytes,
	               rule->where[0] != '\0' ? ", " : "", rule->where[0] != '\0' ? check_where_word(rule) : "",
	               rule->where[0] != '\0' ? " " : "", rule->where);
	return message;
}

bool
check_small_leak_message(const struct check *check, char message[CHECK_MESSAGE_BYTES])
{
	char live[UNITS_TEXT_BYTES];
	char absolute[UNITS_TEXT_BYTES];
	char relative[UNITS_TEXT_BYTES];
	char count[UNITS_TEXT_BYTES];
	char more[UNITS_TEXT_BYTES + 16] = "";

	if (check->small_leak == NULL)
		return false;
	if (check->small_leak_count > 1)
		(void)snprintf(more, sizeof(more), " and %s more", units_count(check->small_leak_count - 1, count));
	(void)snprintf(message, CHECK_MESSAGE_BYTES, "a new leak of %s at %s (less than the tolerance of %s or %s)%s",
	               units_bytes(check->small_leak->live_bytes.min, live), check->small_leak->where,
	               units_bytes(check->tolerance.absolute_bytes, absolute),
	               units_share(check->tolerance.relative_ppm, relative), more);
	return true;
}

bool
check_has_file(const char *file)
{
	return file[0] != '\0' && file[0] != '<' && !place_is_cell(file);
}

const char *
check_relative(const char *file)
{
	char here[PATH_MAX];
	size_t length = getcwd(here, sizeof(here)) != NULL ? strlen(here) : 0;

	return length > 1 && strncmp(file, here, length) == 0 && file[length] == '/' ? file + length + 1 : file;
}

struct check_place
check_place(const struct check *check, const char *file, uint32_t line)
{
	bool is_known = check_has_file(file);
	const char *program = check->after->program[0] != '\0' ? check->after->program : "program";

	return (struct check_place){
		.file = is_known ? check_relative(file) : program,
		.line = is_known && line != 0 ? line : 1,
		.is_known = is_known,
	};
}

const char *
check_identity(const struct check_rule *rule, char identity[CHECK_IDENTITY_BYTES])
{
	if (rule->kind == CHECK_LEAK)
		(void)snprintf(identity, CHECK_IDENTITY_BYTES, "%s/%s/%012" PRIx64, check_rule_name(rule), rule->domain,
		               rule->family);
	else
		(void)snprintf(identity, CHECK_IDENTITY_BYTES, "%s/%s", check_rule_name(rule), rule->domain);
	return identity;
}
