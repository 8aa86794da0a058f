/*
 * cell_result.c - see cell_result.h.
 *
 * Not chosen  a parser of Python: what looks like an expression and is none costs half a sentence of advice.
 */
#include "verdict/cell_result.h"

#include <ctype.h>
#include <string.h>

#include "base/items.h"
#include "base/place.h"

/* What begins with one of these gives no value, or is a command. */
static const char *const statements[] = { "assert", "async", "await",  "break",    "class",   "continue", "def",
	                                      "del",    "elif",  "else",   "except",   "finally", "for",      "from",
	                                      "global", "if",    "import", "nonlocal", "pass",    "print",    "raise",
	                                      "return", "try",   "while",  "with",     "yield" };

static bool
is_statement(const char *text)
{
	size_t length = 0;

	while (isalnum((unsigned char)text[length]) || text[length] == '_')
		length++;
	return ANY(statement, statements, COUNT_OF(statements),
	           strlen(*statement) == length && strncmp(*statement, text, length) == 0) ||
	       (length == 0 && text[0] != '\0' && strchr("%!#@?)]}", text[0]) != NULL);
}

/* Outside of brackets and texts: an assignment, or the end of a ; or an open bracket. */
static bool
is_expression(const char *text, size_t length)
{
	int depth = 0;
	char quote = '\0';

	for (size_t i = 0; i < length; i++) {
		bool is_compared = text[i] == '=' &&
		                   ((i > 0 && strchr("=!<>", text[i - 1]) != NULL) || (i + 1 < length && text[i + 1] == '='));

		if (quote != '\0') {
			i += text[i] == '\\';
			quote = text[i] == quote ? '\0' : quote;
		} else if (text[i] == '#') {
			return is_expression(text, i);
		} else if (text[i] == '"' || text[i] == '\'') {
			quote = text[i];
		} else if (strchr("([{", text[i]) != NULL) {
			depth++;
		} else if (strchr(")]}", text[i]) != NULL) {
			depth--;
		} else if (text[i] == '=' && depth == 0 && !is_compared) {
			return false;
		}
	}
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	return depth == 0 && quote == '\0' && length != 0 && strchr(";:\\", text[length - 1]) == NULL;
}

bool
cell_result_is_shown(const char *text, uint32_t line)
{
	for (uint32_t number = 1; number < line; number++) {
		text = strchr(text, '\n');
		if (text == NULL)
			return false;
		text++;
	}
	size_t length = strcspn(text, "\n");

	if (text[length + strspn(text + length, " \t\r\n")] != '\0') // further lines
		return false;
	return !isspace((unsigned char)text[0]) && !is_statement(text) && is_expression(text, length);
}

const struct model_frame *
cell_result_of(const struct model *model, const struct model_site *site)
{
	const struct model_frame *outermost = NULL;

	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (site->frames[i]->file != NULL && place_is_cell(site->frames[i]->file))
			outermost = site->frames[i];
	}
	for (size_t i = 0; outermost != NULL && i < model->cell_count; i++) {
		if (strcmp(model->cells[i].file, outermost->file) == 0)
			return model->cells[i].text != NULL && cell_result_is_shown(model->cells[i].text, outermost->line)
			           ? outermost
			           : NULL;
	}
	return NULL;
}

bool
cell_result_is_kept(const struct holders_way *way)
{
	const struct way_step *root = way->step_count != 0 ? &way->steps[0] : NULL;

	return root != NULL && root->kind == WAY_GLOBAL &&
	       (strcmp(root->name, "Out") == 0 || strcmp(root->name, "_oh") == 0 ||
	        root->name[strspn(root->name, "_0123456789")] == '\0');
}
