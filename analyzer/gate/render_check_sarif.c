/*
 * render_check_sarif.c - the result of a check as SARIF 2.1.0, for code scanning.
 *
 * Alerts are followed from run to run by rule, path and partial fingerprint: none of them holds a figure. A result needs a place: what
 * has no file gets the program's name.
 *
 * When failing  errors stay in the stream. Paths are written as URIs.
 */
#include <ctype.h>
#include <string.h>

#include "base/json_write.h"
#include "base/memory.h"
#include "gate/check_outputs.h"
#include "gate/check_words.h"
#include "version.h"

#include <stdlib.h>

/* What a URI takes as it is; '/' stays. For free(). */
static char *
uri_of(const char *path)
{
	char *uri = memory_zeroed(strlen(path) * 3 + sizeof("file://"), 1);
	char *to = uri;

	if (path[0] == '/')
		to = stpcpy(to, "file://");
	for (; *path != '\0'; path++) {
		if (isalnum((unsigned char)*path) || strchr("/-._~", *path) != NULL)
			*to++ = *path;
		else
			to += sprintf(to, "%%%02X", (unsigned char)*path);
	}
	return uri;
}

static void
put_text(struct json_write *json, const char *name, const char *text)
{
	json_write_open(json, name, '{');
	json_write_text(json, "text", text);
	json_write_close(json, '}');
}

static void
put_driver(struct json_write *json)
{
	json_write_open(json, "tool", '{');
	json_write_open(json, "driver", '{');
	json_write_text(json, "name", "kmemshim");
	json_write_text(json, "version", KMEMSHIM_VERSION_TEXT);
	json_write_open(json, "rules", '[');
	for (size_t i = 0; i < check_rule_text_count; i++) {
		json_write_open(json, NULL, '{');
		json_write_text(json, "id", check_rule_texts[i].name);
		put_text(json, "shortDescription", check_rule_texts[i].summary);
		json_write_close(json, '}');
	}
	json_write_close(json, ']');
	json_write_close(json, '}');
	json_write_close(json, '}');
}

struct result {
	const char *rule;
	const char *identity;
	const char *level; // error, warning, note
	const char *message;
	const char *file;
	uint32_t line;
};

static void
put_result(const struct check *check, struct json_write *json, const struct result *result)
{
	struct check_place place = check_place(check, result->file, result->line);
	char *uri = uri_of(place.file);
	size_t rule = 0;

	while (rule + 1 < check_rule_text_count && strcmp(check_rule_texts[rule].name, result->rule) != 0)
		rule++;
	const char *text = TEXT(CHECK_MESSAGE_BYTES + 1024, "%s%s%s", result->message,
	                        check->repeat[0] != '\0' ? "\nrepeat: " : "", check->repeat);
	json_write_open(json, NULL, '{');
	json_write_text(json, "ruleId", result->rule);
	json_write_number(json, "ruleIndex", rule);
	json_write_text(json, "level", result->level);
	put_text(json, "message", text);
	json_write_open(json, "locations", '[');
	json_write_open(json, NULL, '{');
	json_write_open(json, "physicalLocation", '{');
	json_write_open(json, "artifactLocation", '{');
	json_write_text(json, "uri", uri);
	json_write_close(json, '}');
	json_write_open(json, "region", '{');
	json_write_number(json, "startLine", place.line);
	json_write_close(json, '}');
	json_write_close(json, '}');
	json_write_close(json, '}');
	json_write_close(json, ']');
	json_write_open(json, "partialFingerprints", '{');
	json_write_text(json, "kmemshim/v1", result->identity);
	json_write_close(json, '}');
	json_write_close(json, '}');
	free(uri);
}

static void
put_results(const struct check *check, struct json_write *json)
{
	char message[CHECK_MESSAGE_BYTES];
	char identity[CHECK_IDENTITY_BYTES];

	if (check->ended_badly != NULL) {
		put_result(check, json, &(struct result){ "ended", "ended", "error", check->ended_badly, "", 0 });
		return;
	}
	for (size_t i = 0; i < check->failed_count; i++) {
		const struct check_rule *rule = &check->rules[i];

		put_result(check, json,
		           &(struct result){ check_rule_name(rule), check_identity(rule, identity), "error",
		                             check_message(check, rule, message), rule->file, rule->line });
	}
	if (check_small_leak_message(check, message))
		put_result(check, json,
		           &(struct result){ "leak", "leak/small", "warning", message, check->small_leak->file,
		                             check->small_leak->line });
}

void
render_check_sarif(const struct check *check, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 6 };

	json_write_open(&json, NULL, '{');
	json_write_text(&json, "version", "2.1.0");
	json_write_open(&json, "runs", '[');
	json_write_open(&json, NULL, '{');
	put_driver(&json);
	json_write_open(&json, "automationDetails", '{');
	json_write_text(&json, "id", "kmemshim-check/");
	json_write_close(&json, '}');
	json_write_open(&json, "invocations", '[');
	json_write_open(&json, NULL, '{');
	json_write_bool(&json, "executionSuccessful", true);
	if (check->repeat[0] != '\0')
		json_write_text(&json, "commandLine", check->repeat);
	json_write_close(&json, '}');
	json_write_close(&json, ']');
	json_write_open(&json, "results", '[');
	put_results(check, &json);
	json_write_close(&json, ']');
	json_write_close(&json, '}');
	json_write_close(&json, ']');
	json_write_close(&json, '}');
}
