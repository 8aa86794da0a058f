/*
 * render_check_gitlab.c - the result of a check as GitLab's code quality report: a JSON list of issues.
 *
 * GitLab shows one issue of each fingerprint and compares them between branches: a fingerprint holds the rule, the domain and the
 * line's key, never a figure. Each issue needs a path: what has no file gets the program's name.
 *
 * When failing  errors stay in the stream.
 */

#include "base/json_write.h"
#include "base/memory.h"
#include "gate/check_outputs.h"
#include "gate/check_words.h"

struct issue {
	const char *rule;
	const char *identity;
	const char *severity; // info, minor, major, critical, blocker
	const char *message;
	const char *file;
	uint32_t line;
};

static void
put_issue(const struct check *check, struct json_write *json, const struct issue *issue)
{
	struct check_place place = check_place(check, issue->file, issue->line);

	const char *text = TEXT(CHECK_MESSAGE_BYTES + 1024, "%s%s%s", issue->message,
	                        check->repeat[0] != '\0' ? "; repeat: " : "", check->repeat);
	const char *name = TEXT(64, "kmemshim/%s", issue->rule);
	const char *fingerprint = TEXT(CHECK_IDENTITY_BYTES + 16, "kmemshim/%s", issue->identity);
	JSON_IN (json, NULL, '{') {
		json_write_text(json, "description", text);
		json_write_text(json, "check_name", name);
		json_write_text(json, "fingerprint", fingerprint);
		json_write_text(json, "severity", issue->severity);
		JSON_IN (json, "location", '{') {
			json_write_text(json, "path", place.file);
			JSON_IN (json, "lines", '{') {
				json_write_number(json, "begin", place.line);
			}
		}
	}
}

void
render_check_gitlab(const struct check *check, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 3 };
	char message[CHECK_MESSAGE_BYTES];
	char identity[CHECK_IDENTITY_BYTES];

	JSON_IN (&json, NULL, '[') {
		if (check->ended_badly != NULL)
			put_issue(check, &json, &(struct issue){ "ended", "ended", "blocker", check->ended_badly, "", 0 });
		for (size_t i = 0; check->ended_badly == NULL && i < check->failed_count; i++) {
			const struct check_rule *rule = &check->rules[i];

			put_issue(check, &json,
			          &(struct issue){ check_rule_name(rule), check_identity(rule, identity), "major",
			                           check_message(check, rule, message), rule->file, rule->line });
		}
		if (check->ended_badly == NULL && check_small_leak_message(check, message))
			put_issue(check, &json,
			          &(struct issue){ "leak", "leak/small", "minor", message, check->small_leak->file,
			                           check->small_leak->line });
	}
}
