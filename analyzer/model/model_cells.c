/*
 * model_cells.c - which cell of a notebook is this code, and what is it called for a person?
 *
 * Code of a cell names a file that never existed: .../ipykernel_PID/HASH.py, <ipython-input-N-HASH>, .../ipython-input-N-HASH.py.
 * Without process and number the same text has the same name, also when it is run again or in another kernel: by that name sites are
 * merged. The recorder kept numbers and texts apart. Those that it could not read may have been written by the notebook's extension. In
 * the end every file of a cell is called by its latest number, "cell In[12]", or by its hash where no number is known.
 *
 * A cell that was changed a little and run again has another text. What it has in common with the newer one is a beginning and an end: lines
 * in these are lines of the newer one, so that what each run allocated there is one line.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text_start.h"
#include "capture/cell_texts.h"
#include "model/model_build.h"

#define HASH_SEED 0xc70f6907u // of ipykernel's names: MurmurHash2
#define NAME_BYTES 96
#define COMMAND_BYTES_MAX 60
#define NEWER_MAX 256                   // cells that one is compared with: all with all would take too long
#define COMPARED_MAX ((size_t)64 << 20) // bytes of them all: a capture may say anything

struct build_cell {
	const char *file;        // the key: without process and number, "<cell HASH>"
	struct build_cell *same; // NULL, or the key is another name of this cell
	uint32_t number;         // latest; 0 = unknown
	uint32_t pid;            // that ran it
	bool is_written;         // the number is that of the extension's file: the interpreter's memory had none
	const char *label;       // NULL until all captures were read
	const char *text;        // as it was compiled; "" = unknown
	size_t bytes;            // of the text, without empty lines at its end
	uint32_t lines;
	const struct build_cell *newer; // the same, changed a little; NULL = none
	uint32_t first_same;            // so many first lines and last lines are as in that one
	uint32_t last_same;
	UT_hash_handle hh;
};

static uint32_t
murmur(const char *text, uint32_t bytes, const char *tail, uint32_t tail_bytes)
{
	const uint32_t factor = 0x5bd1e995;
	uint32_t length = bytes + tail_bytes;
	uint32_t hash = HASH_SEED ^ length;
	uint32_t at = 0;

	while (at < length) {
		uint32_t left = length - at < 4 ? length - at : 4;
		uint32_t word = 0;

		for (uint32_t i = 0; i < left; i++, at++)
			word |= (uint32_t)(unsigned char)(at < bytes ? text[at] : tail[at - bytes]) << (8 * i);
		if (left == 4) {
			word *= factor;
			word ^= word >> 24;
			word *= factor;
			hash *= factor;
			hash ^= word;
		} else {
			hash ^= word;
			hash *= factor;
		}
	}
	hash ^= hash >> 13;
	hash *= factor;
	return hash ^ hash >> 15;
}

/* "12-HASH..." -> 12, and where "HASH..." begins; NULL when it is something else. */
static const char *
skip_number(const char *text, uint32_t *number)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)text[0]) || *end != '-' || value > UINT32_MAX)
		return NULL;
	*number = (uint32_t)value;
	return end + 1;
}

/* What the file is called without process and number. False: it is no cell. number: 0 = not in the name. */
static bool
plain_name(const char *file, char name[NAME_BYTES], uint32_t *number)
{
	static const char prompt[] = "<ipython-input-";
	static const char prompt_file[] = "/ipython-input-";
	const char *slash = strrchr(file, '/');
	const char *folder = slash;
	const char *rest = NULL;

	*number = 0;
	if (text_starts(file, prompt))
		rest = skip_number(file + strlen(prompt), number);
	else if (slash != NULL && text_starts(slash, prompt_file))
		rest = skip_number(slash + strlen(prompt_file), number);
	if (rest == NULL && slash != NULL) {
		while (folder > file && folder[-1] != '/')
			folder--;
		if (strncmp(folder, "ipykernel_", 10) == 0 && isdigit((unsigned char)folder[10]))
			rest = slash + 1;
	}
	return rest != NULL &&
	       (size_t)snprintf(name, NAME_BYTES, "<cell %.*s>", (int)strcspn(rest, ".>"), rest) < NAME_BYTES;
}

static struct build_cell *
find_or_add(struct build *build, const char *name)
{
	struct build_cell *cell;

	HASH_FIND_STR(build->cells, name, cell);
	if (cell == NULL) {
		cell = memory_zeroed(1, sizeof(*cell));
		cell->file = text_pool_add_text(build->pool, name);
		cell->text = "";
		HASH_ADD_KEYPTR(hh, build->cells, cell->file, strlen(cell->file), cell);
	}
	return cell;
}

/* A second key, for cells whose file says the number. */
static void
run_name(uint32_t pid, uint32_t number, char name[NAME_BYTES])
{
	(void)snprintf(name, NAME_BYTES, "<run %u of %u>", (unsigned)number, (unsigned)pid);
}

static void
set_number(struct build_cell *cell, uint32_t number, uint32_t pid)
{
	if (number < cell->number)
		return;
	cell->number = number;
	cell->pid = pid;
}

const char *
model_cells_file(struct build *build, uint32_t pid, const char *file)
{
	char name[NAME_BYTES];
	uint32_t number;

	if (!plain_name(file, name, &number))
		return file;

	struct build_cell *cell = find_or_add(build, name);

	if (number != 0) {
		set_number(cell, number, pid);
		run_name(pid, number, name);
		find_or_add(build, name)->same = cell;
	}
	return cell->file;
}

/* Kept as it is: each line is cleaned when it is shown. */
static const char *
keep_text(struct build *build, const char *text, size_t bytes)
{
	char *copy = text_pool_room(build->pool, bytes + 1);

	memcpy(copy, text, bytes);
	return copy;
}

/* Lines are counted in the compiled text. A cell magic is compiled as one call; the code that it runs keeps the notebook's numbers. */
static void
set_text(struct build *build, struct build_cell *cell, const struct capture_cell *stored)
{
	static const char magic[] = "get_ipython().run_cell_magic(";
	bool is_magic = stored->compiled_bytes >= strlen(magic) && memcmp(stored->compiled, magic, strlen(magic)) == 0;
	bool is_typed = stored->compiled_bytes == 0 || is_magic;
	const char *text = is_typed ? stored->typed : stored->compiled;
	uint32_t bytes = is_typed ? stored->typed_bytes : stored->compiled_bytes;

	if (cell->text[0] != '\0' || !stored->has_lines)
		return;
	for (; is_magic && bytes > 0 && text[0] == '\n'; text++) // IPython counts from the first line that is not empty
		bytes--;
	cell->text = keep_text(build, text, bytes);
}

void
model_cells_add(struct build *build, struct capture *capture)
{
	static const char *const tails[] = { "", "\n", "\n\n" }; // IPython keeps the text without them
	uint32_t next = capture_list(&capture->header->cells);
	uint32_t pid = capture->identity->pid;
	// cells of a sound capture do not overlap
	uint64_t budget_bytes = capture->sections[KMEM_SECTION_RECORDS].size_bytes;
	struct capture_cell stored;
	struct build_cell *cell;
	char name[NAME_BYTES];

	while (build->cells != NULL && capture_next_cell(capture, &next, &stored)) {
		uint64_t bytes = (uint64_t)stored.typed_bytes + stored.compiled_bytes;

		if (bytes > budget_bytes) {
			capture_damaged(capture, "section \"records\": cells overlap: older cells are left out");
			break;
		}
		budget_bytes -= bytes;
		for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
			(void)snprintf(name, sizeof(name), "<cell %u>",
			               (unsigned)murmur(stored.typed, stored.typed_bytes, tails[i], (uint32_t)strlen(tails[i])));
			HASH_FIND_STR(build->cells, name, cell);
			if (cell == NULL)
				continue;
			set_number(cell, stored.number, pid);
			set_text(build, cell, &stored);
		}
		run_name(pid, stored.number, name);
		HASH_FIND_STR(build->cells, name, cell);
		if (cell != NULL)
			set_text(build, cell->same, &stored);
	}
}

static void
count_lines(struct build_cell *cell)
{
	for (cell->bytes = strlen(cell->text); cell->bytes != 0 && cell->text[cell->bytes - 1] == '\n';)
		cell->bytes--;
	cell->lines = 1;
	for (size_t i = 0; i < cell->bytes; i++)
		cell->lines += cell->text[i] == '\n';
}

/* A line counts where all of it is the same. */
static bool
is_changed_a_little(struct build_cell *cell, const struct build_cell *newer)
{
	const struct build_cell *shorter = cell->lines < newer->lines ? cell : newer;
	const struct build_cell *longer = shorter == cell ? newer : cell;
	uint32_t first = 0;
	uint32_t last = 0;
	size_t same = 0;

	for (; same < cell->bytes && same < newer->bytes && cell->text[same] == newer->text[same]; same++)
		first += cell->text[same] == '\n';
	first += same == cell->bytes && newer->text[same] == '\n';
	for (same = 0; same < cell->bytes && same < newer->bytes; same++) {
		if (cell->text[cell->bytes - 1 - same] != newer->text[newer->bytes - 1 - same])
			break;
		last += cell->text[cell->bytes - 1 - same] == '\n';
	}
	last += same == cell->bytes && same < newer->bytes && newer->text[newer->bytes - 1 - same] == '\n';
	cell->first_same = first < shorter->lines ? first : shorter->lines;
	cell->last_same = last < shorter->lines - cell->first_same ? last : shorter->lines - cell->first_same;
	return 2 * (cell->first_same + cell->last_same) >= longer->lines;
}

ORDER_OF_POINTERS(compare_numbers, struct build_cell, order_numbers(a->number, b->number))

void
model_cells_link(struct build *build)
{
	OWNED struct build_cell **cells = memory_zeroed(HASH_COUNT(build->cells), sizeof(struct build_cell *));
	size_t compared = 0;
	size_t count = 0;

	for (struct build_cell *cell = build->cells; cell != NULL; cell = cell->hh.next) {
		if (cell->same != NULL || cell->text[0] == '\0' || cell->number == 0)
			continue;
		count_lines(cell);
		cells[count++] = cell;
	}
	SORT(cells, count, compare_numbers);
	for (size_t i = 0; i < count; i++) {
		cells[i]->newer = NULL;
		for (size_t at = i + 1; at < count && at - i <= NEWER_MAX && compared < COMPARED_MAX && cells[i]->newer == NULL;
		     at++) {
			compared += cells[i]->bytes;
			if (cells[at]->number != cells[i]->number && is_changed_a_little(cells[i], cells[at]))
				cells[i]->newer = cells[at];
		}
	}
}

/* 0 = it is among those that were changed. */
static uint32_t
newer_line(const struct build_cell *cell, uint32_t line)
{
	return line <= cell->first_same               ? line
	       : line > cell->lines - cell->last_same ? line + cell->newer->lines - cell->lines
	                                              : 0;
}

bool
model_cells_newest(struct build *build, struct model_frame *frame)
{
	const char *file = frame->file;
	const struct build_cell *cell = NULL;

	if (file[0] == '<')
		HASH_FIND_STR(build->cells, file, cell);
	for (; cell != NULL && cell->newer != NULL; cell = cell->newer) {
		uint32_t line = newer_line(cell, frame->line);
		/* Of a function, the line that names it too. */
		uint32_t first_line = frame->function[0] == '<' ? frame->first_line : newer_line(cell, frame->first_line);

		if (line == 0 || first_line == 0)
			break;
		frame->line = line;
		frame->first_line = first_line;
		frame->file = cell->newer->file;
	}
	return frame->file != file;
}

/* pid: 0 = not known, which is of a notebook with one process mostly. */
static void
note_since_guard(struct build *build, uint32_t pid, const struct cell_text *written)
{
	bool is_command = strchr(written->text, '\n') == NULL && strlen(written->text) <= COMMAND_BYTES_MAX;

	EACH (process, build->processes, build->process_count) {
		unsigned count = process->cells_since_guard.count + 1;

		if (process->guard.number == 0 || written->began_ns <= process->guard.monotonic_ns ||
		    (pid != 0 && pid != process->identity->pid))
			continue;
		process->cells_since_guard = (struct model_cells_since){
			.count = count,
			.number = written->number,
			.began_ns = written->began_ns,
			.command = is_command ? text_pool_add_text(build->pool, written->text) : "",
		};
	}
}

/* A number or text from the interpreter's memory is not replaced: that says what really ran. */
static void
take_written(void *owner, const struct cell_text *written)
{
	static const char folder[] = "/ipykernel_";
	struct build *build = owner;
	const char *kernel = strstr(written->file, folder);
	uint32_t pid = kernel != NULL ? (uint32_t)strtoul(kernel + strlen(folder), NULL, 10) : 0;
	struct build_cell *cell;
	char name[NAME_BYTES];
	uint32_t in_name;

	note_since_guard(build, pid, written);
	if (!plain_name(written->file, name, &in_name))
		return;
	HASH_FIND_STR(build->cells, name, cell);
	if (cell == NULL) // holds nothing
		return;
	if (cell->text[0] == '\0')
		cell->text = keep_text(build, written->text, strlen(written->text));
	if (written->number != 0 && (cell->number == 0 || cell->is_written)) {
		set_number(cell, written->number, pid);
		cell->is_written = true;
	}
}

void
model_cells_add_written(struct build *build, const char *capture_path)
{
	struct fail fail;

	if ((build->cells != NULL || ANY(process, build->processes, build->process_count, process->guard.number != 0)) &&
	    !cell_texts_read(capture_path, take_written, build, &fail))
		model_damage(build, fail.text);
}

/* "cell In[12]". Where several kernels ran different cells under one number, each has a name of its own. */
static void
label(struct build *build, struct build_cell *cell)
{
	char name[2 * NAME_BYTES];
	struct build_cell *other;

	if (cell->number != 0)
		(void)snprintf(name, sizeof(name), "cell In[%u]", (unsigned)cell->number);
	else
		(void)snprintf(name, sizeof(name), "cell #%.*s", (int)strlen(cell->file) - 7, cell->file + 6);
	HASH_FIND_STR(build->cells, name, other);
	if (other != NULL) {
		(void)snprintf(name, sizeof(name), "cell In[%u] of %u (#%.*s)", (unsigned)cell->number, (unsigned)cell->pid,
		               (int)strlen(cell->file) - 7, cell->file + 6);
	}
	other = find_or_add(build, name);
	other->same = cell;
	cell->label = other->file;
}

size_t
model_cells_label(struct build *build, struct model_cell **cells)
{
	struct build_cell *last = build->cells;
	size_t count = 0;

	*cells = NULL;
	for (struct build_cell *cell = build->cells; cell != NULL; cell = cell->hh.next)
		last = cell;
	for (struct build_cell *cell = build->cells; cell != NULL; cell = cell->hh.next) {
		if (cell->same == NULL) {
			label(build, cell);
			*MEMORY_NEXT(*cells, count) = (struct model_cell){ .file = cell->label, .text = cell->text };
		}
		if (cell == last) // what follows are labels
			break;
	}
	return count;
}

const char *
model_cells_name(struct build *build, const char *file)
{
	struct build_cell *cell = NULL;

	if (file[0] == '<')
		HASH_FIND_STR(build->cells, file, cell);
	return cell != NULL && cell->label != NULL ? cell->label : file;
}

void
model_cells_free(struct build *build)
{
	HASH_FREE(build->cells, free);
}
