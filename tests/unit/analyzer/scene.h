/*
 * scene.h - a model made by hand, told in words: what is live where, what was looked at, how it ended?
 *
 *     scene_add(&hand, "heap:41 300M leak volume_bytes=%uM; mmap:6 2G untouched=1G; look brk=330M own=40M; killed", volume);
 *
 * Statements end with ';'. A word before '=' is the name of a member. 2G-4K is a number, and so are 3s, 10ms and max. A word that is not
 * known fails the test. What a statement begins with:
 *
 *     heap:41 300M     that much is live, allocated in this domain at this line; or mmap, reserved, cuda0, tensors. Behind it members, and:
 *                        leak                 blocks of all twelve generations are alive
 *                        gens=1/12/0/3        of so many of so many, and of the latest; quarters=9/4/2/1
 *                        tick=3               it allocated in this one alone, of 24 until now
 *                        import, arena        the stack is of an import, or of an arena
 *                        same                 it is at the line of the first site
 *                        untouched=1G         so much of it is not in memory
 *                        blocks=9             are live; freed=2G/99: so much more, in so many blocks, was given back
 *                        module=, function=   of the innermost frame; with a '/' the module is its path, too
 *     name mmap NAME   what this domain is
 *     look brk=9M      what was in memory, by part; sample: of malloc's pages; beat: a further heartbeat
 *     refuse 2G        the last request; of=cuda0: in which domain; at=2: by which site, else by the first
 *     limit as 4G      of addresses, or cgroup, as found at the start
 *     exit 1           how it ended: signal 11, killed, oom (by the kernel, in its container), closed 1 (nobody waited for it), status 1 (it
 *                        wrote nothing down); alive: it has not
 *     child name=x     a further process, like the first with a pid of its own; parent: members of the first. Behind all else. seen=9s: when
 *                        its last heartbeat was
 *     process, identity, heartbeat, resident, launcher, before, after, now, container, failed, model, last (site), domain heap: members
 */
#ifndef SCENE_H
#define SCENE_H

#include "hand_model.h"

#include <signal.h>

struct scene_field {
	const char *object, *name;
	size_t offset, bytes;
};

#define SCENE_FIELD(object, type, member)                                                     \
	{                                                                                         \
		object, #member, offsetof(struct type, member), sizeof(((struct type *)NULL)->member) \
	}
#define SITE(member) SCENE_FIELD("site", model_site, member)
#define PROCESS(member) SCENE_FIELD("process", model_process, member)
#define IDENTITY(member) SCENE_FIELD("identity", kmem_identity, member)
#define HEARTBEAT(member) SCENE_FIELD("heartbeat", kmem_heartbeat, member)
#define RESIDENT(member) SCENE_FIELD("resident", kmem_resident, member)
#define LAUNCHER(member) SCENE_FIELD("launcher", kmem_launcher, member)
#define COUNTERS(member) SCENE_FIELD("counters", kmem_kill_counters, member)
#define SAMPLE(member) SCENE_FIELD("sample", model_heap_sample, member)
#define CONTAINER(member) SCENE_FIELD("container", kmem_container, member)
#define FAILED(member) SCENE_FIELD("failed", model_failed, member)
#define MODEL(member) SCENE_FIELD("model", model, member)
#define DOMAIN(member) SCENE_FIELD("domain", model_domain, member)
static const struct scene_field scene_fields[] = {
	SITE(live_bytes),
	SITE(samples),
	SITE(span_bytes),
	SITE(live_count),
	SITE(most_live_bytes),
	SITE(peak_bytes),
	SITE(allocated_bytes),
	SITE(allocated_count),
	SITE(volume_bytes),
	SITE(pinned_bytes),
	SITE(released_bytes),
	SITE(process),
	SITE(process_count),
	SITE(born_generations),
	SITE(steps),
	SITE(is_rest_of_arenas),
	SITE(first_ms),
	SITE(has_paused),
	SITE(import),
	SITE(library),
	PROCESS(state),
	PROCESS(has_expandable_segments),
	PROCESS(exit_code),
	PROCESS(ended_monotonic_ns),
	PROCESS(is_finalizing),
	PROCESS(python_version),
	PROCESS(live_bytes),
	PROCESS(peak_bytes),
	PROCESS(failed_count),
	PROCESS(filled_bytes),
	PROCESS(thread_count),
	PROCESS(inherited_bytes),
	PROCESS(inherited_heap_bytes),
	PROCESS(copied_bytes),
	PROCESS(parent),
	PROCESS(name),
	PROCESS(path),
	PROCESS(heartbeat_count),
	PROCESS(launcher),
	PROCESS(resident),
	IDENTITY(pid),
	IDENTITY(parent_pid),
	IDENTITY(is_first),
	IDENTITY(swap_bytes),
	IDENTITY(shm_bytes),
	IDENTITY(overcommit_mode),
	IDENTITY(cgroup_version),
	HEARTBEAT(monotonic_ns),
	HEARTBEAT(live_bytes),
	HEARTBEAT(resident_bytes),
	HEARTBEAT(cgroup_bytes),
	HEARTBEAT(limit_bytes),
	HEARTBEAT(available_bytes),
	HEARTBEAT(swap_free_bytes),
	RESIDENT(monotonic_ns),
	RESIDENT(resident_bytes),
	LAUNCHER(max_resident_bytes),
	COUNTERS(cgroup_oom_kill),
	COUNTERS(cgroup_oom),
	COUNTERS(cgroup_max_hits),
	COUNTERS(machine_oom_kill),
	SAMPLE(bytes),
	SAMPLE(empty_bytes),
	SAMPLE(sparse_bytes),
	SAMPLE(sparse_live_bytes),
	CONTAINER(anonymous_bytes),
	CONTAINER(memory_files_bytes),
	CONTAINER(cached_bytes),
	FAILED(monotonic_ns),
	FAILED(error),
	FAILED(thread),
	FAILED(is_by_guard),
	FAILED(process),
	FAILED(had_success_after),
	FAILED(got_bytes),
	FAILED(free_bytes),
	FAILED(total_bytes),
	FAILED(pool_kept_bytes),
	FAILED(space_limit_bytes),
	FAILED(own_space_bytes),
	MODEL(domain_count),
	MODEL(sample_bytes),
	MODEL(capture_damage_count),
	DOMAIN(live_bytes),
	DOMAIN(concurrent_peak_bytes),
	DOMAIN(live_count),
	DOMAIN(peak_bytes),
	DOMAIN(allocated_count),
	DOMAIN(holder_count),
	DOMAIN(together_live_bytes),
};
#undef SITE
#undef PROCESS
#undef IDENTITY
#undef HEARTBEAT
#undef RESIDENT
#undef LAUNCHER
#undef COUNTERS
#undef SAMPLE
#undef CONTAINER
#undef FAILED
#undef MODEL
#undef DOMAIN
#undef SCENE_FIELD

static uint64_t scene_dollar; // what "$" is

/* 2G-4K, 3s, 10ms, max, $. */
static inline uint64_t
scene_number(const char *text)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = { { "K", KIB }, { "M", MIB }, { "G", GIB }, { "ms", 1000000 }, { "s", UINT64_C(1000000000) } };
	uint64_t sum = 0;

	for (const char *at = text; *at != '\0';) {
		bool is_less = *at == '-';
		char *end = (char *)at + 3;
		uint64_t number;

		at += *at == '-' || *at == '+';
		if (*at == '$') {
			number = scene_dollar;
			end = (char *)at + 1;
		} else {
			number = strncmp(at, "max", 3) == 0 ? UINT64_MAX : strtoull(at, &end, 0);
		}
		if (end == at)
			fail_msg("scene: no number: %s", text);
		for (size_t i = 0; i < ARRAY_LEN(units); i++) {
			size_t length = strlen(units[i].name);

			if (strncmp(end, units[i].name, length) == 0 && strspn(end, "KMGms") == length) {
				number *= units[i].factor;
				end += length;
				break;
			}
		}
		sum = is_less ? sum - number : sum + number;
		at = end;
	}
	return sum;
}

/* `name`=`value` of an object. */
static inline void
scene_set(const char *object, void *at, const char *name, char *value)
{
	static char texts[4096];
	static size_t used;

	for (size_t i = 0; i < ARRAY_LEN(scene_fields); i++) {
		const struct scene_field *field = &scene_fields[i];
		void *member = (char *)at + field->offset;
		char *end;
		uint64_t number;

		if (strcmp(field->object, object) != 0 || strcmp(field->name, name) != 0)
			continue;
		(void)strtoull(value, &end, 0);
		if (end != value || strncmp(value, "max", 3) == 0 || strchr("-$", *value) != NULL) {
			number = scene_number(value);
			memcpy(member, &number, field->bytes);
			return;
		}
		used = used + strlen(value) < sizeof(texts) ? used : 0;
		memcpy(member, &(char *){ strcpy(texts + used, value) }, field->bytes);
		used += strlen(value) + 1;
		return;
	}
	fail_msg("scene: %s has no %s", object, name);
}

/* The next word of a statement; NULL at its end. `value`: what follows '='. */
static inline char *
scene_word(char **rest, char **value)
{
	char *word = strtok_r(NULL, " \n\t", rest);

	*value = word != NULL ? strchr(word, '=') : NULL;
	if (*value != NULL)
		*(*value)++ = '\0';
	return word;
}

static inline void
scene_members(const char *object, void *at, char **rest)
{
	char *value;

	for (char *word; (word = scene_word(rest, &value)) != NULL;)
		scene_set(object, at, word, value);
}

static inline unsigned
scene_domain(const char *name, size_t length)
{
	static const char *const names[] = { "heap", "mmap", "reserved", "cuda0", "tensors" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
			return i;
	}
	fail_msg("scene: no domain or word: %s", name);
	return 0;
}

static inline void
scene_untouched(struct hand_model *hand, struct model_site *site, uint64_t bytes)
{
	site->untouched_bytes = bytes;
	hand->domains[site->domain].untouched_bytes += bytes;
	hand->domains[site->domain].peak_untouched_bytes += bytes < site->peak_bytes ? bytes : site->peak_bytes;
	hand->process.untouched_bytes += bytes;
}

/* "1/2/3/4" */
static inline void
scene_numbers(char *text, uint64_t numbers[4])
{
	for (unsigned i = 0; i < 4; i++) {
		char *number = strsep(&text, "/");

		numbers[i] = number != NULL ? scene_number(number) : 0;
	}
}

/* It worked with so much more, in so many blocks, and gave it back. */
static inline void
scene_freed(struct hand_model *hand, struct model_site *site, char *value)
{
	struct model_domain *domain = &hand->domains[site->domain];
	uint64_t of[4];

	scene_numbers(value, of);
	site->allocated_bytes += of[0];
	site->allocated_count += of[1];
	domain->allocated_bytes += of[0];
	domain->allocated_count += of[1];
	domain->freed_bytes += of[0];
	domain->freed_count += of[1];
}

/* heap:41 300M ... */
static inline void
scene_site(struct hand_model *hand, const char *place, char **rest)
{
	unsigned domain = scene_domain(place, strcspn(place, ":"));
	uint64_t of[4];
	char *value;
	struct model_site *site = hand_model_site(hand, domain, (uint32_t)atoi(strchr(place, ':') + 1),
	                                          scene_number(scene_word(rest, &value)));
	size_t number = (size_t)(site - hand->sites);

	if (domain == TENSORS0)
		hand->model.domain_count = HAND_DOMAINS + 1;
	for (char *word; (word = scene_word(rest, &value)) != NULL;) {
		if (strcmp(word, "leak") == 0) {
			hand_model_generations(site, 12, 12, 3, 3);
		} else if (strcmp(word, "gens") == 0) {
			scene_numbers(value, of);
			hand_model_generations(site, (uint32_t)of[0], (uint32_t)of[1], (uint32_t)of[2], (uint32_t)of[3]);
		} else if (strcmp(word, "quarters") == 0) {
			scene_numbers(value, site->quarters);
		} else if (strcmp(word, "tick") == 0) {
			site->ticks.now = 24;
			site->ticks.born[0] = UINT64_C(1) << scene_number(value);
			site->ticks.alive[0] = site->live_count != 0 ? site->ticks.born[0] : 0;
		} else if (strcmp(word, "import") == 0 && value == NULL) {
			site->stack_flags = KMEM_STACK_IMPORT_CUT;
		} else if (strcmp(word, "arena") == 0) {
			site->stack_flags = KMEM_STACK_ARENA;
		} else if (strcmp(word, "same") == 0) {
			hand->stacks[number][2] = &hand->frames[0][2];
			site->where = &hand->frames[0][2];
		} else if (strcmp(word, "blocks") == 0) { // so many, of the domain too
			site->live_count = site->allocated_count = scene_number(value);
			hand->domains[domain].live_count += site->live_count - 1;
			hand->domains[domain].allocated_count += site->live_count - 1;
		} else if (strcmp(word, "freed") == 0) {
			scene_freed(hand, site, value);
		} else if (strcmp(word, "untouched") == 0) {
			scene_untouched(hand, site, scene_number(value));
		} else if (strcmp(word, "module") == 0 || strcmp(word, "function") == 0) {
			struct model_frame *frame = &hand->frames[number][0];
			const char *text = strcpy(hand->names[number], value);
			const char *slash = strrchr(text, '/');

			*(word[0] == 'm' ? &frame->module : &frame->function) = slash != NULL ? slash + 1 : text;
			if (slash != NULL)
				frame->module_path = text;
		} else {
			scene_set("site", site, word, value);
		}
	}
}

/* look brk=9M reserved=2M */
static inline void
scene_look(struct hand_model *hand, char **rest)
{
	static const char *const parts[KMEM_RESIDENT_PARTS] = {
		[KMEM_RESIDENT_OTHER] = "other",         [KMEM_RESIDENT_BRK] = "brk",           [KMEM_RESIDENT_HEAP] = "heap",
		[KMEM_RESIDENT_MMAP] = "mmap",           [KMEM_RESIDENT_RESERVED] = "reserved", [KMEM_RESIDENT_FILE] = "file",
		[KMEM_RESIDENT_PROGRAM] = "program",     [KMEM_RESIDENT_STACKS] = "stacks",     [KMEM_RESIDENT_OWN] = "own",
		[KMEM_RESIDENT_INHERITED] = "inherited", [KMEM_RESIDENT_SHARED] = "shared",
	};
	char *value;

	hand->resident = (struct kmem_resident){ .sequence = 1 };
	for (char *word; (word = scene_word(rest, &value)) != NULL;) {
		size_t part = 0;

		while (part < KMEM_RESIDENT_PARTS && (parts[part] == NULL || strcmp(parts[part], word) != 0))
			part++;
		if (part == KMEM_RESIDENT_PARTS) {
			scene_set("resident", &hand->resident, word, value);
			continue;
		}
		hand->resident.part_bytes[part] = scene_number(value);
		hand->resident.resident_bytes += scene_number(value);
	}
	hand->heartbeat.resident_bytes = hand->resident.resident_bytes;
}

static inline void
scene_refuse(struct hand_model *hand, char **rest)
{
	char *value;

	hand_model_refuse(hand, scene_number(scene_word(rest, &value)));
	for (char *word; (word = scene_word(rest, &value)) != NULL;) {
		if (strcmp(word, "of") == 0)
			hand->failed.domain = scene_domain(value, strlen(value));
		else if (strcmp(word, "at") == 0)
			hand->failed.site = &hand->sites[atoi(value)];
		else
			scene_set("failed", &hand->failed, word, value);
	}
}

/* The first process of the model, or a further one. */
static inline void
scene_process(struct hand_model *hand, bool is_child, char **rest)
{
	size_t number = is_child ? hand->model.process_count : 0;
	char *value;
	struct model_process *process = &hand->family[number];

	assert_true(number < HAND_FAMILY);
	if (hand->model.processes == &hand->process) {
		hand->family[0] = hand->process;
		hand->model.processes = hand->family;
	}
	if (is_child) {
		hand->identities[number] = hand_model_child(hand);
		hand->identities[number].pid += (uint32_t)number - 1;
		*process = hand->process;
		process->identity = &hand->identities[number];
		process->launcher = NULL;
		process->parent = 0;
		hand->model.process_count++;
	}
	for (char *word; (word = scene_word(rest, &value)) != NULL;) {
		if (strcmp(word, "seen") == 0) {
			hand->seen[number] = hand->heartbeat;
			hand->seen[number].monotonic_ns = scene_number(value);
			process->heartbeats = &hand->seen[number];
			process->heartbeat_count = 1;
		} else {
			scene_set("process", process, word, value);
		}
	}
}

static inline void
scene_beat(struct hand_model *hand, char **rest)
{
	size_t number = hand->process.heartbeats == hand->beats ? hand->process.heartbeat_count : 0;

	assert_true(number < HAND_BEATS);
	hand->beats[number] = hand->heartbeat;
	hand->process.heartbeats = hand->beats;
	hand->process.heartbeat_count = number + 1;
	scene_members("heartbeat", &hand->beats[number], rest);
}

static inline void
scene_limit(struct hand_model *hand, char **rest)
{
	char *value, *kind = scene_word(rest, &value);
	bool is_cgroup = strcmp(kind, "cgroup") == 0;
	uint64_t bytes = scene_number(scene_word(rest, &value));

	hand->identity.limits[0] = (struct kmem_limit){ .kind = is_cgroup ? KMEM_LIMIT_CGROUP : KMEM_LIMIT_ADDRESS_SPACE,
		                                            .bytes = bytes };
	if (is_cgroup)
		hand->heartbeat.limit_bytes = bytes;
}

static inline void
scene_statement(struct hand_model *hand, char *statement)
{
	const struct {
		const char *name, *object;
		void *at;
	} objects[] = {
		{ "process", "process", &hand->process },
		{ "identity", "identity", &hand->identity },
		{ "heartbeat", "heartbeat", &hand->heartbeat },
		{ "resident", "resident", &hand->resident },
		{ "launcher", "launcher", &hand->launcher },
		{ "before", "counters", &hand->identity.before },
		{ "after", "counters", &hand->launcher.after },
		{ "now", "counters", &hand_model_counters },
		{ "container", "container", &hand->process.container },
		{ "model", "model", &hand->model },
		{ "failed", "failed", &hand->failed },
		{ "last", "site", &hand->sites[hand->model.site_count - (hand->model.site_count != 0)] },
		{ "sample", "sample", &hand->process.heap_sample },
	};
	char *rest, *value, *word = strtok_r(statement, " \n\t", &rest);
	unsigned domain;

	if (word == NULL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		if (strcmp(word, objects[i].name) != 0)
			continue;
		hand->process.heap_sample.sampled_pages = strcmp(word, "sample") == 0 ? 1000
		                                                                      : hand->process.heap_sample.sampled_pages;
		scene_members(objects[i].object, objects[i].at, &rest);
		return;
	}
	if (strcmp(word, "look") == 0) {
		scene_look(hand, &rest);
	} else if (strcmp(word, "beat") == 0) {
		scene_beat(hand, &rest);
	} else if (strcmp(word, "refuse") == 0) {
		scene_refuse(hand, &rest);
	} else if (strcmp(word, "limit") == 0) {
		scene_limit(hand, &rest);
	} else if (strcmp(word, "parent") == 0 || strcmp(word, "child") == 0) {
		scene_process(hand, word[0] == 'c', &rest);
	} else if (strcmp(word, "killed") == 0) {
		hand_model_waited(hand, SIGKILL);
	} else if (strcmp(word, "oom") == 0) { // in its container
		hand_model_waited(hand, SIGKILL);
		hand->launcher.after = (struct kmem_kill_counters){ 1, 1, 1, 1 };
	} else if (strcmp(word, "signal") == 0) {
		hand_model_waited(hand, (int)scene_number(scene_word(&rest, &value)));
	} else if (strcmp(word, "status") == 0) { // without a word of its own
		hand_model_waited(hand, (int)scene_number(scene_word(&rest, &value)) << 8);
	} else if (strcmp(word, "exit") == 0) {
		hand_model_exited(hand, (int)scene_number(scene_word(&rest, &value)));
	} else if (strcmp(word, "closed") == 0) { // nobody waited for it
		hand->process.state = KMEM_STATE_CLEAN_EXIT;
		hand->process.exit_code = (int)scene_number(scene_word(&rest, &value));
	} else if (strcmp(word, "alive") == 0) {
		hand->process.is_alive = true;
	} else if (strcmp(word, "name") == 0) {
		word = scene_word(&rest, &value);
		domain = scene_domain(word, strlen(word));
		hand_model_domain(&hand->domains[domain], strcpy(hand->domain_names[domain], scene_word(&rest, &value)));
	} else if (strcmp(word, "domain") == 0) {
		word = scene_word(&rest, &value);
		scene_members("domain", &hand->domains[scene_domain(word, strlen(word))], &rest);
	} else {
		scene_site(hand, word, &rest);
	}
}

/* Adds to a model that was made. */
__attribute__((format(printf, 2, 3))) static inline void
scene_add(struct hand_model *hand, const char *format, ...)
{
	char text[2048];
	char *rest = text;
	va_list values;

	va_start(values, format);
	assert_true((size_t)vsnprintf(text, sizeof(text), format, values) < sizeof(text));
	va_end(values);
	for (char *statement; (statement = strsep(&rest, ";")) != NULL;)
		scene_statement(hand, statement);
}

/* A scene in which $ is a number: something holds of it from exactly this one on, and not at the one beside it, as of threshold.h. */
struct scene_threshold {
	const char *name, *scene;
	bool (*holds)(void);
	uint64_t at, beside;
};

/* `finish` is called before each question. */
static inline void
scene_thresholds_check(struct hand_model *hand, const struct scene_threshold *rows, size_t count, void (*finish)(void))
{
	for (size_t i = 0; i < 2 * count; i++) {
		const struct scene_threshold *row = &rows[i / 2];

		hand_model_make(hand);
		scene_dollar = i % 2 == 0 ? row->at : row->beside;
		scene_add(hand, "%s", row->scene);
		finish();
		if (row->holds() != (i % 2 == 0))
			fail_msg("%s: %s at %llu", row->name, i % 2 == 0 ? "does not hold" : "holds, too",
			         (unsigned long long)scene_dollar);
	}
}

#endif
