/*
 * kernel_life.c - the folders of kernels' lives (see kernel_life.h).
 *
 * The lock on life.json says that a launcher lives: it goes with the process, in whatever container that is. A process id would be
 * taken by somebody else.
 *
 * When failing  see kernel_life.h. What cannot be removed stays.
 */
#include "jupyter/kernel_life.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "base/make_folders.h"
#include "base/memory.h"
#include "base/owner.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "base/text_start.h"

#define FOLDER_MODE 0700 // texts of cells are the user's alone
#define FILE_MODE 0600
#define STAMP_LENGTH (sizeof("20261123T081530.000123") - 1)
#define STAMP_BYTES 64

static const char life_name[] = "life.json";
static const char new_name[] = "life.json.new";
static const char told_name[] = "told";

/*
 * Texts of cells are written here, and what is found here is told, or removed, as theirs. home: without links afterwards, which somebody may
 * change later. is_made: it has to be there.
 */
static bool
check_home(char home[PATH_MAX], bool is_made, struct fail *fail)
{
	char place[PATH_MAX];
	OWNED_FILE int folder = owner_open(home, O_PATH | O_DIRECTORY, 0);

	if (folder < 0 && errno == ENOENT)
		return !is_made ||
		       fail_set(fail, EXIT_USAGE,
		                "%s: no kernel was recorded: install one with kmemshim jupyter install, and choose it in the "
		                "notebook",
		                home);
	if (folder < 0 && errno != ELOOP)
		return fail_set(fail, EXIT_USAGE, "%s: %s", home, strerror(errno));
	bool is_known = folder >= 0 && regular_file_path(folder, home);
	(void)snprintf(place, sizeof(place), "%s", home);
	return (is_known && owner_is_alone(place)) ||
	       fail_set(
			   fail, EXIT_USAGE,
			   "%s: other users can change what lies in %s: set XDG_STATE_HOME to a folder of your own that only you "
			   "can write in",
			   home, place);
}

bool
kernel_life_home(const char *wanted, char home[PATH_MAX], struct fail *fail)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *user = getenv("HOME");
	int length;

	if (user == NULL || user[0] != '/') {
		const struct passwd *entry = getpwuid(geteuid());

		user = entry != NULL && entry->pw_dir != NULL ? entry->pw_dir : "";
	}
	if (wanted != NULL)
		length = snprintf(home, PATH_MAX, "%s", wanted);
	else if (state != NULL && state[0] == '/')
		length = snprintf(home, PATH_MAX, "%s/kmemshim/kernels", state);
	else if (user[0] == '/')
		length = snprintf(home, PATH_MAX, "%s/.local/state/kmemshim/kernels", user);
	else
		return fail_set(fail, EXIT_USAGE, "there is no home folder to keep captures of kernels in: set HOME");
	if (length >= PATH_MAX / 2)
		return fail_set(fail, EXIT_USAGE, "%.200s...: the path is too long", home);
	return check_home(home, false, fail);
}

bool
kernel_life_is_there(char home[PATH_MAX], struct fail *fail)
{
	return check_home(home, true, fail);
}

static void
let_go(struct kernel_life *life)
{
	regular_file_close(&life->file);
	life->file = -1;
}

/* Jupyter writes the path as an argument of its own, or behind "=". */
static void
find_connection(char *const *arguments, char connection[PATH_MAX])
{
	connection[0] = '\0';
	for (; *arguments != NULL; arguments++) {
		const char *equals = strchr(*arguments, '=');
		const char *path = (*arguments)[0] == '-' && equals != NULL ? equals + 1 : *arguments;

		if (!text_ends(path, ".json"))
			continue;
		if (realpath(path, connection) == NULL)
			(void)snprintf(connection, PATH_MAX, "%s", path);
	}
}

static void
write_time(char text[32], const char *format)
{
	time_t now = time(NULL);
	struct tm parts;

	(void)gmtime_r(&now, &parts);
	(void)strftime(text, 32, format, &parts);
}

static bool
write_life(const struct kernel_life *life, const struct kernel_end *end)
{
	OWNED char *text = NULL;
	size_t bytes;
	struct json_write json = { .stream = memory_stream(&text, &bytes), .inline_depth = 1 };
	char ended[32];

	JSON_IN (&json, NULL, '{') {
		json_write_number(&json, "schema", 1);
		json_write_text(&json, "started", life->started);
		json_write_text(&json, "connection_file", life->connection);
		json_write_text(&json, "notebook", life->notebook);
		if (end != NULL) {
			write_time(ended, "%Y-%m-%dT%H:%M:%SZ");
			json_write_text(&json, "ended", ended);
			json_write_bool(&json, "is_death", end->is_death);
			json_write_signed(&json, "exit_status", end->exit_status);
			json_write_signed(&json, "signal", end->signal);
			json_write_text(&json, "cause", end->cause);
		}
	}
	memory_stream_close(json.stream);
	/* In place: the lock is on this file, so no other one may take its name. */
	return pwrite(life->file, text, bytes, 0) == (ssize_t)bytes && ftruncate(life->file, (off_t)bytes) == 0;
}

static int
is_life(const struct dirent *entry)
{
	return entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && strchr(entry->d_name, '-') != NULL;
}

static int
newest_first(const struct dirent **a, const struct dirent **b)
{
	return alphasort(b, a);
}

/* All lives, the newest first; the caller frees the names and the list. 0 = none, or they cannot be read. */
static size_t
list_lives(const char *home, struct dirent ***lives)
{
	int count = scandir(home, lives, is_life, newest_first);

	if (count < 0)
		*lives = NULL;
	return count > 0 ? (size_t)count : 0;
}

static void
free_lives(struct dirent **lives, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(lives[i]);
	free(lives);
}

/*
 * Lives are in the order of their names. Where the clock was set back, the newest has a name of the future: then this one is called right
 * behind it. "20261123T081530.000123"; of a name in another form, its beginning and one more digit.
 */
static void
stay_in_order(const char *home, char stamp[STAMP_BYTES])
{
	struct dirent **lives;
	size_t count = list_lives(home, &lives);

	if (count != 0 && strcmp(lives[0]->d_name, stamp) >= 0) {
		size_t length = strcspn(lives[0]->d_name, "-");
		size_t at;

		if (length > STAMP_BYTES - 2)
			length = STAMP_BYTES - 2;
		(void)snprintf(stamp, STAMP_BYTES, "%.*s", (int)length, lives[0]->d_name);
		for (at = length; at > 0 && stamp[at - 1] == '9'; at--)
			stamp[at - 1] = '0';
		if (length == STAMP_LENGTH && at > 0 && isdigit((unsigned char)stamp[at - 1])) {
			stamp[at - 1]++;
		} else {
			(void)snprintf(stamp, STAMP_BYTES, "%.*s", (int)length, lives[0]->d_name);
			stamp[length] = '0'; // behind the same without it: "-" comes before digits
			stamp[length + 1] = '\0';
		}
	}
	free_lives(lives, count);
}

bool
kernel_life_begin(struct kernel_life *life, char home[PATH_MAX], char *const *arguments, struct fail *fail)
{
	const char *notebook = getenv("JPY_SESSION_NAME");
	char path[PATH_MAX + sizeof(new_name)];
	char seconds[32];
	struct timespec now;

	*life = (struct kernel_life){ .file = -1 };
	find_connection(arguments, life->connection);
	(void)snprintf(life->notebook, sizeof(life->notebook), "%s", notebook != NULL ? notebook : "");
	write_time(life->started, "%Y-%m-%dT%H:%M:%SZ");
	write_time(seconds, "%Y%m%dT%H%M%S");
	(void)clock_gettime(CLOCK_REALTIME, &now);
	char *stamp = TEXT(STAMP_BYTES, "%s.%06ld", seconds, now.tv_nsec / 1000);
	if (!make_folders(home, FOLDER_MODE))
		return fail_set(fail, EXIT_USAGE, "%s: cannot make this folder for captures of kernels: %s", home,
		                strerror(errno));
	if (!check_home(home, true, fail))
		return false;
	stay_in_order(home, stamp);
	if (snprintf(life->folder, sizeof(life->folder), "%s/%s-%ld", home, stamp, (long)getpid()) >=
	    (int)sizeof(life->folder))
		return fail_set(fail, EXIT_USAGE, "%.200s...: the path is too long", home);
	(void)snprintf(path, sizeof(path), "%s/%s", life->folder, new_name);
	const char *name = TEXT(PATH_MAX + sizeof(life_name), "%s/%s", life->folder, life_name);
	if (mkdir(life->folder, FOLDER_MODE) != 0)
		return fail_set(fail, EXIT_USAGE, "%s: cannot make this folder for captures of kernels: %s", life->folder,
		                strerror(errno));
	life->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	/* Who finds it under its name finds it locked. Without locks (Lustre may have none) a life that was cut off looks as if it ran. */
	if (life->file >= 0)
		(void)flock(life->file, LOCK_EX | LOCK_NB);
	if (life->file < 0 || !write_life(life, NULL) || rename(path, name) != 0) {
		(void)fail_set(fail, EXIT_USAGE, "%s: cannot be written: %s", path, strerror(errno));
		let_go(life);
		(void)unlink(path);
		(void)rmdir(life->folder);
		return false;
	}
	return true;
}

void
kernel_life_end(struct kernel_life *life, const struct kernel_end *end)
{
	if (life->file >= 0)
		(void)write_life(life, end);
	let_go(life);
}

enum life_state { LIFE_RUNNING, LIFE_DIED, LIFE_ENDED, LIFE_CUT_OFF, LIFE_UNREADABLE };

static void
take_text(const json_t *root, const char *name, char *to, size_t room)
{
	const char *text = json_string_value(json_object_get(root, name));

	(void)snprintf(to, room, "%s", text != NULL ? text : "");
}

/* life->file is open and locked where the state is LIFE_CUT_OFF, else closed. */
static enum life_state
read_life(const char *home, const char *name, struct kernel_life *life)
{
	enum life_state state;
	struct fail fail;

	*life = (struct kernel_life){ .file = -1 };
	(void)snprintf(life->folder, sizeof(life->folder), "%.2000s/%.1000s", home, name);
	const char *path = TEXT(2 * PATH_MAX, "%s/%s", life->folder, life_name);

	life->file = regular_file_open(path, O_RDWR | O_NOFOLLOW, NULL);
	if (life->file < 0)
		return LIFE_UNREADABLE;

	json_t *root = json_read_file(dup(life->file), path, &fail);

	take_text(root, "connection_file", life->connection, sizeof(life->connection));
	take_text(root, "notebook", life->notebook, sizeof(life->notebook));
	take_text(root, "started", life->started, sizeof(life->started));
	/* The lock is asked for last: others look, too, and hold it meanwhile. */
	if (json_object_get(root, "ended") != NULL)
		state = json_is_true(json_object_get(root, "is_death")) ? LIFE_DIED : LIFE_ENDED;
	else if (flock(life->file, LOCK_EX | LOCK_NB) != 0)
		state = LIFE_RUNNING;
	else
		state = LIFE_CUT_OFF; // also of a file that is damaged
	json_decref(root);
	if (state != LIFE_CUT_OFF)
		let_go(life);
	return state;
}

/* The first life of the list, from *at on, that has this connection file. *at becomes its place. */
static enum life_state
find_life(const char *home, struct dirent *const *lives, size_t *at, size_t count, const char *connection,
          struct kernel_life *found)
{
	for (; *at < count && connection[0] != '\0'; (*at)++) {
		enum life_state state = read_life(home, lives[*at]->d_name, found);

		if (state != LIFE_UNREADABLE && strcmp(found->connection, connection) == 0)
			return state;
		let_go(found);
	}
	return LIFE_UNREADABLE;
}

static bool
is_own(const struct kernel_life *life, const char *name)
{
	const char *slash = strrchr(life->folder, '/');

	return slash != NULL && strcmp(slash + 1, name) == 0;
}

static bool
was_told(const struct kernel_life *life)
{
	return access(TEXT(PATH_MAX + sizeof(told_name), "%s/%s", life->folder, told_name), F_OK) == 0;
}

enum kernel_past
kernel_life_previous(const struct kernel_life *life, const char *home, struct kernel_life *previous)
{
	struct dirent **lives;
	size_t count = list_lives(home, &lives);
	size_t at = 0;
	enum life_state state;

	while (at < count && !is_own(life, lives[at]->d_name))
		at++;
	do {
		at++;
		state = find_life(home, lives, &at, count, life->connection, previous);
	} while (state == LIFE_ENDED ||
	         state == LIFE_RUNNING); // its user restarted it: what died before is to be told still
	free_lives(lives, count);
	if (state == LIFE_CUT_OFF)
		return KERNEL_PAST_UNKNOWN;
	return state == LIFE_DIED && !was_told(previous) ? KERNEL_PAST_DEATH : KERNEL_PAST_NONE;
}

/* A life's folder holds files only. Links are removed, not followed. */
static void
remove_life(const char *path)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *entries = folder >= 0 ? fdopendir(folder) : NULL;

	for (const char *name; entries != NULL && (name = read_names_next(entries)) != NULL;)
		(void)unlinkat(folder, name, 0);
	if (entries != NULL)
		(void)closedir(entries);
	(void)rmdir(path);
}

/* It died, its kernel may be started again, and nobody has been told: its server removes the connection file with the kernel. */
static bool
is_to_be_told(const struct kernel_life *life)
{
	return !was_told(life) && life->connection[0] != '\0' && access(life->connection, F_OK) == 0;
}

void
kernel_life_prune(const char *home, size_t keep, const char *spared)
{
	struct dirent **lives;
	size_t count = list_lives(home, &lives);
	size_t kept_deaths = 0;

	for (size_t i = keep; i < count; i++) {
		struct kernel_life life;
		enum life_state state = read_life(home, lives[i]->d_name, &life);
		bool is_kept = state == LIFE_RUNNING || strcmp(life.folder, spared) == 0;

		let_go(&life);
		if (!is_kept && state == LIFE_DIED && kept_deaths < keep && is_to_be_told(&life)) {
			kept_deaths++;
			is_kept = true;
		}
		if (!is_kept)
			remove_life(life.folder);
	}
	free_lives(lives, count);
}

bool
kernel_life_newest(const char *home, char folder[PATH_MAX], struct fail *fail)
{
	struct dirent **lives;
	struct kernel_life newest = { .file = -1 };
	struct kernel_life earlier = { .file = -1 };
	enum life_state state = LIFE_UNREADABLE;

	size_t count = list_lives(home, &lives);

	for (size_t i = 0; i < count && state == LIFE_UNREADABLE; i++) {
		size_t at = i + 1;

		state = read_life(home, lives[i]->d_name, &newest);
		if (state == LIFE_RUNNING && find_life(home, lives, &at, count, newest.connection, &earlier) == LIFE_DIED)
			(void)snprintf(newest.folder, sizeof(newest.folder), "%s", earlier.folder);
	}
	let_go(&newest);
	let_go(&earlier);
	free_lives(lives, count);
	if (state == LIFE_UNREADABLE)
		return fail_set(fail, EXIT_USAGE,
		                "%s: no kernel was recorded: install one with kmemshim jupyter install, and choose it in the "
		                "notebook",
		                home);
	(void)snprintf(folder, PATH_MAX, "%s", newest.folder);
	return true;
}
