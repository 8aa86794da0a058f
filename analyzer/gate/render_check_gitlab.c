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

static void
put_issue(const struct check *check, void *to, const struct check_issue *issue)
{
	static const char *const severities[] = {
		[CHECK_WARNING] = "minor", [CHECK_ERROR] = "major", [CHECK_ENDED] = "blocker"
	};
	struct json_write *json = to;
	struct check_place place = check_place(check, issue->file, issue->line);

	const char *text = TEXT(CHECK_MESSAGE_BYTES + 1024, "%s%s%s", issue->message,
	                        check->repeat[0] != '\0' ? "; repeat: " : "", check->repeat);
	const char *name = TEXT(64, "kmemshim/%s", issue->rule);
	const char *fingerprint = TEXT(CHECK_IDENTITY_BYTES + 16, "kmemshim/%s", issue->identity);
	JSON_IN (json, NULL, '{') {
		json_write_text(json, "description", text);
		json_write_text(json, "check_name", name);
		json_write_text(json, "fingerprint", fingerprint);
		json_write_text(json, "severity", severities[issue->level]);
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

	JSON_IN (&json, NULL, '[') {
		check_visit(check, put_issue, &json);
	}
}
