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
	JSON_IN (json, name, '{') {
		json_write_text(json, "text", text);
	}
}

static void
put_driver(struct json_write *json)
{
	JSON_IN (json, "tool", '{') {
		JSON_IN (json, "driver", '{') {
			json_write_text(json, "name", "kmemshim");
			json_write_text(json, "version", KMEMSHIM_VERSION_TEXT);
			JSON_IN (json, "rules", '[') {
				for (size_t i = 0; i < check_rule_text_count; i++) {
					JSON_IN (json, NULL, '{') {
						json_write_text(json, "id", check_rule_texts[i].name);
						put_text(json, "shortDescription", check_rule_texts[i].summary);
					}
				}
			}
		}
	}
}

static void
put_result(const struct check *check, void *to, const struct check_issue *result)
{
	struct json_write *json = to;
	struct check_place place = check_place(check, result->file, result->line);
	OWNED char *uri = uri_of(place.file);
	size_t rule = 0;

	while (rule + 1 < check_rule_text_count && strcmp(check_rule_texts[rule].name, result->rule) != 0)
		rule++;
	const char *text = TEXT(CHECK_MESSAGE_BYTES + 1024, "%s%s%s", result->message,
	                        check->repeat[0] != '\0' ? "\nrepeat: " : "", check->repeat);
	JSON_IN (json, NULL, '{') {
		json_write_text(json, "ruleId", result->rule);
		json_write_number(json, "ruleIndex", rule);
		json_write_text(json, "level", result->level == CHECK_WARNING ? "warning" : "error");
		put_text(json, "message", text);
		JSON_IN (json, "locations", '[') {
			JSON_IN (json, NULL, '{') {
				JSON_IN (json, "physicalLocation", '{') {
					JSON_IN (json, "artifactLocation", '{') {
						json_write_text(json, "uri", uri);
					}
					JSON_IN (json, "region", '{') {
						json_write_number(json, "startLine", place.line);
					}
				}
			}
		}
		JSON_IN (json, "partialFingerprints", '{') {
			json_write_text(json, "kmemshim/v1", result->identity);
		}
	}
}

void
render_check_sarif(const struct check *check, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 6 };

	JSON_IN (&json, NULL, '{') {
		json_write_text(&json, "version", "2.1.0");
		JSON_IN (&json, "runs", '[') {
			JSON_IN (&json, NULL, '{') {
				put_driver(&json);
				JSON_IN (&json, "automationDetails", '{') {
					json_write_text(&json, "id", "kmemshim-check/");
				}
				JSON_IN (&json, "invocations", '[') {
					JSON_IN (&json, NULL, '{') {
						json_write_bool(&json, "executionSuccessful", true);
						if (check->repeat[0] != '\0')
							json_write_text(&json, "commandLine", check->repeat);
					}
				}
				JSON_IN (&json, "results", '[') {
					check_visit(check, put_result, &json);
				}
			}
		}
	}
}
