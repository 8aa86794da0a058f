/* check_words.c - see check_words.h. */
#include "gate/check_words.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/units.h"

const struct check_rule_text check_rule_texts[] = {
	{ "ended", "The program must not be killed and must not fail." },
	{ "leak", "A line must not keep more blocks in each round." },
	{ "grown", "A new line must not keep most of what it allocates." },
	{ "line", "A line must not hold more at the end than the baseline allows." },
	{ "live", "What is held at the end must not be more than the baseline or the budget allows." },
	{ "peak", "What is held at the peak must not be more than the baseline or the budget allows." },
	{ "step", "What is kept in each step must not be more than the budget allows." },
};
const size_t check_rule_text_count = sizeof(check_rule_texts) / sizeof(check_rule_texts[0]);

static const char *
figure_name(const struct check_rule *rule)
{
	return rule->kind == CHECK_PEAK ? "peak" : rule->kind == CHECK_STEP ? "what is kept in each step" : "live bytes";
}

const char *
check_limit_text(const struct check_rule *rule, char text[CHECK_LIMIT_BYTES])
{
	uint64_t beside = rule->estimated_bytes + rule->suppressed_bytes;

	(void)snprintf(text, CHECK_LIMIT_BYTES, "%s", UNITS_BYTES(rule->limit_bytes - beside));
	if (rule->estimated_bytes != 0)
		memory_text_add(text, CHECK_LIMIT_BYTES, " + %s for estimates", UNITS_BYTES(rule->estimated_bytes));
	if (rule->suppressed_bytes != 0)
		memory_text_add(text, CHECK_LIMIT_BYTES, " + %s for suppressed lines", UNITS_BYTES(rule->suppressed_bytes));
	return text;
}

const char *
check_message(const struct check *check, const struct check_rule *rule, char message[CHECK_MESSAGE_BYTES])
{
	char limit[CHECK_LIMIT_BYTES];
	char source[240] = "";

	const char *before = UNITS_BYTES(rule->before_bytes);
	const char *after = UNITS_BYTES(rule->after_bytes);
	(void)check_limit_text(rule, limit);
	if (rule->budget != NULL)
		(void)snprintf(source, sizeof(source), "; %.200s:%zu", check->config->path, rule->budget->line);
	if (rule->has_before)
		(void)snprintf(message, CHECK_MESSAGE_BYTES,
		               "%s of %.200s rose from %s to %s, allowed %s (%" PRIu64 ", %" PRIu64 ", %" PRIu64 " bytes%s)",
		               figure_name(rule), rule->domain, before, after, limit, rule->before_bytes, rule->after_bytes,
		               rule->limit_bytes, source);
	else
		(void)snprintf(message, CHECK_MESSAGE_BYTES,
		               "%s of %.200s %s %s, allowed %s (%" PRIu64 ", %" PRIu64 " bytes%s)", figure_name(rule),
		               rule->domain, rule->kind == CHECK_PEAK || rule->kind == CHECK_STEP ? "is" : "are", after, limit,
		               rule->after_bytes, rule->limit_bytes, source);
	if (rule->where[0] != '\0') // "allocated at train.py:41 epoch"
		memory_text_add(message, CHECK_MESSAGE_BYTES, ", %s%s", check_where_word(rule), rule->where);
	return message;
}

bool
check_small_leak_message(const struct check *check, char message[CHECK_MESSAGE_BYTES])
{
	char more[UNITS_TEXT_BYTES + 16] = "";

	if (check->small_leak == NULL)
		return false;
	if (check->small_leak_count > 1)
		(void)snprintf(more, sizeof(more), " and %s more", UNITS_COUNT(check->small_leak_count - 1));
	(void)snprintf(message, CHECK_MESSAGE_BYTES, "a new leak of %s at %s (less than the tolerance of %s or %s)%s",
	               UNITS_BYTES(check->small_leak->live_bytes.min), check->small_leak->where,
	               UNITS_BYTES(check->tolerance.absolute_bytes), UNITS_SHARE(check->tolerance.relative_ppm), more);
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

static const char *
check_identity(const struct check_rule *rule, char identity[CHECK_IDENTITY_BYTES])
{
	if (rule->kind == CHECK_LEAK)
		(void)snprintf(identity, CHECK_IDENTITY_BYTES, "line/%s/%012" PRIx64, rule->domain,
		               rule->family); // whatever its class
	else
		(void)snprintf(identity, CHECK_IDENTITY_BYTES, "%s/%s", check_rule_name(rule), rule->domain);
	return identity;
}

void
check_visit(const struct check *check, void visit(const struct check *, void *, const struct check_issue *),
            void *context)
{
	char message[CHECK_MESSAGE_BYTES];
	char identity[CHECK_IDENTITY_BYTES];

	if (check->ended_badly != NULL) {
		visit(check, context, &(struct check_issue){ "ended", "ended", CHECK_ENDED, check->ended_badly, "", 0 });
		return;
	}
	EACH (rule, check->rules, check->failed_count)
		visit(check, context,
		      &(struct check_issue){ check_rule_name(rule), check_identity(rule, identity), CHECK_ERROR,
		                             check_message(check, rule, message), rule->file, rule->line });
	if (check_small_leak_message(check, message))
		visit(check, context,
		      &(struct check_issue){ "leak", "leak/small", CHECK_WARNING, message, check->small_leak->file,
		                             check->small_leak->line });
}
