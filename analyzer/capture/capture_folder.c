/*
 * capture_folder.c - which captures belong together (see capture_folder.h)?
 *
 * A folder may hold many sessions; the newest is the one whose first process started last, of those of a trusted owner. Files of other sessions are
 * not mixed in: their counters have nothing to do with each other.
 */
#include "capture/capture_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/owner.h"
#include "base/read_each.h"
#include "base/text_start.h"
#include "capture/capture_memory.h"
#include "capture/capture_reader.h"
#include "capture/process_alive.h"

#define DAMAGES_MAX 24
#define SUFFIX ".kmem"

struct candidate {
	char *path;
	char session[sizeof(((struct kmem_identity *)NULL)->session)];
	uint64_t start_ns;
	bool is_first;
	bool is_trusted; // owner.h; of the first one of a session: any of them is
};

struct candidates {
	size_t count;
	struct candidate *items;
};

static void
free_candidates(struct candidates *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->items[i].path);
	free(found->items);
}

static void
note_unreadable(struct capture_list *list, size_t unreadable, const char *text)
{
	if (unreadable <= DAMAGES_MAX)
		list->damages[list->damage_count++] = memory_text(text);
}

ORDER_OF_POINTERS(compare_texts, char, strcmp(a, b))

/* Paths of all captures in the folder, by name, so that two runs over one folder say the same. */
static bool
list_folder(const char *folder, char ***paths, size_t *count, struct fail *fail)
{
	DIR *directory = opendir(folder);
	const char *name;

	*paths = NULL;
	*count = 0;
	if (directory == NULL)
		return fail_set(fail, EXIT_CAPTURE, "%s: cannot list this folder (%s)", folder, strerror(errno));
	while ((name = read_names_next(directory)) != NULL) {
		if (text_ends(name, SUFFIX) && name[strlen(SUFFIX)] != '\0')
			*MEMORY_NEXT(*paths, *count) = memory_printed("%s/%s", folder, name);
	}
	(void)closedir(directory);
	for (size_t i = 0; i < *count; i++)
		capture_memory_settle((*paths)[i]);
	SORT(*paths, *count, compare_texts);
	return true;
}

/* Reads whose captures these are; takes the paths over. */
static void
peek_all(char **paths, size_t count, bool is_salvage, struct candidates *found, struct capture_list *list,
         struct fail *last)
{
	OWNED struct kmem_identity *identity = memory_zeroed(1, sizeof(*identity));
	size_t unreadable = 0;

	for (size_t i = 0; i < count; i++) {
		uid_t owner;

		if (!capture_peek(paths[i], is_salvage, identity, &owner, last)) {
			if (last->code != EXIT_USAGE) // it is gone: a small child that ends removes its own
				note_unreadable(list, ++unreadable, last->text);
			free(paths[i]);
			continue;
		}

		struct candidate *item = MEMORY_NEXT(found->items, found->count);

		item->path = paths[i];
		memcpy(item->session, identity->session, sizeof(item->session));
		item->start_ns = identity->start_realtime_ns;
		item->is_first = identity->is_first != 0;
		item->is_trusted = owner_is_trusted(owner);
	}
	if (unreadable > DAMAGES_MAX) {
		char text[96];

		(void)snprintf(text, sizeof(text), "cannot read %zu more captures in this folder", unreadable - DAMAGES_MAX);
		list->damages[list->damage_count++] = memory_text(text);
		list->damages_unsaid = unreadable - DAMAGES_MAX;
	}
}

/* Anybody can say of a capture that it is of the first process; those of whom it is believed go first. */
static unsigned
rank_of(const struct candidate *item)
{
	return !item->is_first ? 2 : item->is_trusted ? 0 : 1;
}

/* Sessions together; in each the first process first, then by start. */
ORDER_OF(compare_candidates, struct candidate,
	strcmp(a->session, b->session) ?: order_numbers(rank_of(a), rank_of(b))
	?: order_numbers(a->start_ns, b->start_ns) ?: strcmp(a->path, b->path))

static bool
is_leader(const struct candidates *found, size_t number)
{
	return number == 0 || strcmp(found->items[number].session, found->items[number - 1].session) != 0;
}

/* When a session began is what a capture says that is trusted, if there is one. */
static void
settle_leaders(struct candidates *found)
{
	struct candidate *leader = found->items;

	for (size_t i = 0; i < found->count; i++) {
		const struct candidate *item = &found->items[i];

		if (is_leader(found, i))
			leader = &found->items[i];
		else if (item->is_trusted && !leader->is_trusted) {
			leader->is_trusted = true;
			leader->start_ns = item->start_ns;
		}
	}
}

/* Which is newer? One that is not trusted never: it may have any start. */
ORDER_OF(compare_starts, struct candidate,
	order_numbers(a->is_trusted, b->is_trusted) ?: order_numbers(a->start_ns, b->start_ns)
	?: strcmp(a->session, b->session))

/* Moves the paths of one session into the list, of the newest when none is named. False: no such one. */
static bool
take_session(struct candidates *found, const char *session, struct capture_list *list)
{
	const struct candidate *chosen = NULL;

	for (size_t i = 0; i < found->count; i++) {
		const struct candidate *item = &found->items[i];
		bool is_better = session != NULL ? strcmp(item->session, session) == 0
		                                 : chosen == NULL || compare_starts(item, chosen) > 0;

		list->session_count += is_leader(found, i);
		if (is_leader(found, i) && is_better)
			chosen = item;
	}
	list->paths = memory_zeroed(found->count, sizeof(char *));
	for (size_t i = 0; i < found->count && chosen != NULL; i++) {
		struct candidate *item = &found->items[i];

		if (strcmp(item->session, chosen->session) != 0)
			continue;
		list->paths[list->count++] = item->path;
		item->path = NULL;
	}
	return chosen != NULL;
}

/* Of the folders in it that hold captures the one that changed last, for free(), and how many there are; NULL = none. */
static char *
newest_below(const char *folder, size_t *folder_count)
{
	struct timespec newest_time = { 0 };
	char *newest = NULL;

	*folder_count = 0;
	EACH_NAME (name, folder) {
		struct stat status;
		struct fail ignored;
		OWNED char **paths = NULL;
		size_t count = 0;

		if (name[0] == '.')
			continue;

		char *path = memory_printed("%s/%s", folder, name);

		if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
			(void)list_folder(path, &paths, &count, &ignored);
		for (size_t i = 0; i < count; i++)
			free(paths[i]);
		*folder_count += count != 0;
		if (count != 0 &&
		    (newest == NULL || status.st_mtim.tv_sec > newest_time.tv_sec ||
		     (status.st_mtim.tv_sec == newest_time.tv_sec && status.st_mtim.tv_nsec > newest_time.tv_nsec))) {
			newest_time = status.st_mtim;
			free(newest);
			newest = path;
		} else {
			free(path);
		}
	}
	return newest;
}

/* Nothing is there to be read, as when the path is wrong. */
static bool
refuse_empty(const char *folder, struct fail *fail)
{
	size_t count;
	OWNED char *newest = newest_below(folder, &count);

	if (newest == NULL)
		return fail_set(fail, EXIT_USAGE,
		                "%s: contains no captures (*%s): record one with kmemshim run -o %s -- COMMAND", folder, SUFFIX,
		                folder);
	(void)fail_set(fail, EXIT_USAGE,
	               "%s: contains no captures itself, but %zu folder%s: give one of them, the newest is %s", folder,
	               count, count == 1 ? " in it does" : "s in it do", newest);
	return false;
}

/* Everything readable in the folder, sessions together. */
static bool
read_folder(const char *folder, bool is_salvage, struct candidates *found, struct capture_list *list, struct fail *fail)
{
	struct fail last = { .text = "" };
	char **paths;
	size_t count;

	if (!list_folder(folder, &paths, &count, fail))
		return false;
	if (count == 0) {
		free(paths);
		return refuse_empty(folder, fail);
	}
	peek_all(paths, count, is_salvage, found, list, &last);
	free(paths);
	if (found->count == 0 && count == 1)
		return fail_set(fail, EXIT_CAPTURE, "%s", last.text);
	if (found->count == 0)
		return fail_set(fail, EXIT_CAPTURE, "%s: cannot read any of its %zu captures; the first error: %s", folder,
		                count, list->damages[0]);
	SORT(found->items, found->count, compare_candidates);
	settle_leaders(found);
	return true;
}

/* A folder without captures that holds a kmemshim.out means that. Returns the path to use, for free(). */
static char *
folder_with_captures(const char *folder)
{
	size_t bytes = strlen(folder) + sizeof("/" CAPTURE_FOLDER_DEFAULT);
	char *inner = memory_zeroed(1, bytes);
	struct fail ignored;
	struct stat status;
	size_t count = 0;
	OWNED char **paths = NULL;

	(void)snprintf(inner, bytes, "%s/" CAPTURE_FOLDER_DEFAULT, folder);
	(void)list_folder(folder, &paths, &count, &ignored);
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	if (count == 0 && stat(inner, &status) == 0 && S_ISDIR(status.st_mode))
		return inner;
	free(inner);
	return memory_text(folder);
}

/* What the argument is; *folder is NULL for a file, else for free(). */
static bool
find_folder(const char *capture, char **folder, struct fail *fail)
{
	const char *path = capture != NULL ? capture : CAPTURE_FOLDER_DEFAULT;
	struct stat status;

	*folder = NULL;
	if (stat(path, &status) != 0 && lstat(path, &status) != 0) { // a link that leads nowhere has its own line
		bool is_missing = errno == ENOENT || errno == ENOTDIR;

		if (is_missing && capture == NULL)
			return fail_set(fail, EXIT_USAGE,
			                "no capture given, and there is no ./%s: record one with kmemshim run -- COMMAND", path);
		return fail_set(fail, is_missing ? EXIT_USAGE : EXIT_CAPTURE,
		                "%s: cannot read it (%s): give a %s file or a folder of them", path, strerror(errno), SUFFIX);
	}
	if (S_ISDIR(status.st_mode))
		*folder = folder_with_captures(path);
	return true;
}

bool
capture_folder_list(const char *capture, const char *session, bool is_salvage, struct capture_list *list,
                    struct fail *fail)
{
	struct candidates found = { 0 };
	OWNED char *folder = NULL;
	bool is_done = true;

	*list = (struct capture_list){ .damages = memory_zeroed(DAMAGES_MAX + 1, sizeof(char *)) };
	if (!find_folder(capture, &folder, fail)) {
		is_done = false;
	} else if (folder != NULL) {
		is_done = read_folder(folder, is_salvage, &found, list, fail) &&
		          (take_session(&found, session, list) ||
		           fail_set(fail, EXIT_CAPTURE, "%s: the captures of session %s were removed meanwhile: try again",
		                    folder, session));
	} else {
		list->paths = memory_zeroed(1, sizeof(char *));
		list->paths[list->count++] = memory_text(capture);
		list->session_count = 1;
	}
	free_candidates(&found);
	if (!is_done)
		capture_list_free(list);
	return is_done;
}

bool
capture_folder_sessions(const char *capture, bool is_salvage, struct session_list *sessions, struct fail *fail)
{
	struct capture_list unreadable = { .damages = memory_zeroed(DAMAGES_MAX + 1, sizeof(char *)) };
	struct candidates found = { 0 };
	OWNED struct candidate *leaders = NULL;
	size_t count = 0;
	OWNED char *folder = NULL;
	bool is_done = find_folder(capture, &folder, fail) &&
	               (folder == NULL || read_folder(folder, is_salvage, &found, &unreadable, fail));

	leaders = memory_zeroed(found.count, sizeof(*leaders));
	for (size_t i = 0; i < found.count; i++) {
		if (is_leader(&found, i))
			leaders[count++] = found.items[i];
	}
	SORT(leaders, count, compare_starts);
	*sessions = (struct session_list){ .names = memory_zeroed(count + 1, sizeof(char *)) };
	for (size_t i = 0; i < count; i++)
		sessions->names[sessions->count++] = memory_text(leaders[i].session);
	if (is_done && folder == NULL)
		sessions->count = 1;
	free_candidates(&found);
	capture_list_free(&unreadable);
	return is_done;
}

static const struct candidate *
leader_of(const struct candidates *found, size_t number)
{
	while (!is_leader(found, number))
		number--;
	return &found->items[number];
}

char *
capture_folder_running(const char *capture, bool is_salvage)
{
	struct capture_list unreadable = { .damages = memory_zeroed(DAMAGES_MAX + 1, sizeof(char *)) };
	OWNED struct kmem_identity *identity = memory_zeroed(1, sizeof(*identity));
	const struct candidate *newest = NULL;
	struct candidates found = { 0 };
	struct fail ignored;
	char *session;
	OWNED char *folder = NULL;
	uid_t owner;

	if (find_folder(capture, &folder, &ignored) && folder != NULL)
		(void)read_folder(folder, is_salvage, &found, &unreadable, &ignored);
	for (size_t i = 0; i < found.count; i++) {
		const struct candidate *leader = leader_of(&found, i);

		if ((newest == NULL || compare_starts(leader, newest) > 0) &&
		    capture_peek(found.items[i].path, is_salvage, identity, &owner, &ignored) && process_is_alive(identity))
			newest = leader;
	}
	session = newest != NULL ? memory_text(newest->session) : NULL;
	free_candidates(&found);
	capture_list_free(&unreadable);
	return session;
}

void
session_list_free(struct session_list *sessions)
{
	for (size_t i = 0; i < sessions->count; i++)
		free(sessions->names[i]);
	free(sessions->names);
	*sessions = (struct session_list){ 0 };
}

void
capture_list_free(struct capture_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->paths[i]);
	for (size_t i = 0; i < list->damage_count; i++)
		free(list->damages[i]);
	free(list->paths);
	free(list->damages);
	*list = (struct capture_list){ 0 };
}
