/*
 * test_verdict_domain.c - is what is said about one domain alone true of that domain, and about nothing else?
 */
#include "verdict_case.h"

#include "verdict/verdict.h"

static void
exited(int status)
{
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.exit_code = status;
	hand.process.ended_monotonic_ns = 50000000;
}

static void
decide(const char *domain)
{
	rank_leaks_classify(&hand.model);
	verdict_decide_domain((struct finished_model){ &hand.model }, verdict_now(), domain, &verdict);
}

/* Tensors of one line that is a leak or not, in memory of the device, beside NCCL's; and a heap that has nothing to do with it. */
static void
make_device(bool is_leak)
{
	struct model_site *site;

	hand_model_make(&hand);
	hand.model.domain_count = HAND_DOMAINS + 1;
	hand_model_site(&hand, HEAP, 77, 300 * MIB);
	hand_model_site(&hand, CUDA0, 41, 900 * MIB);
	hand.frames[1][0].module = "libc10_cuda.so";
	hand_model_site(&hand, CUDA0, 42, 64 * MIB);
	hand.frames[2][0].module = "libnccl.so.2";
	site = hand_model_site(&hand, TENSORS0, 43, 700 * MIB);
	hand_model_generations(site, is_leak ? 12 : 1, 12, is_leak ? 3 : 0, 3);
	exited(0);
}

#define LINE_OF_TENSORS "domain-line [cuda:0/tensors] 700 MiB of 700 MiB at train.py:43 epoch"
#define GROWTH_OF_TENSORS "domain-accumulates [cuda:0/tensors] 700 MiB of 700 MiB at train.py:43 epoch (told), likely"

static const struct {
	const char *domain;
	bool is_leak;
	const char *found, *advised;
} cases[] = {
	{ "cuda:0", true,
	  "ending; domain [cuda:0] 964 MiB; domain-parts [cuda:0] 700 MiB of 964 MiB; " LINE_OF_TENSORS
	  "; " GROWTH_OF_TENSORS "; refused-requests",
	  "release-blocks" },
	{ "cuda", true,
	  "ending; domain [cuda:0] 964 MiB; domain-parts [cuda:0] 700 MiB of 964 MiB; " LINE_OF_TENSORS
	  "; " GROWTH_OF_TENSORS "; refused-requests",
	  "release-blocks" },
	{ "cuda:0/tensors", true,
	  "ending; domain [cuda:0/tensors] 700 MiB; " LINE_OF_TENSORS "; " GROWTH_OF_TENSORS "; refused-requests",
	  "release-blocks" },
	{ "cuda:0", false,
	  "ending; domain [cuda:0] 964 MiB; domain-parts [cuda:0] 700 MiB of 964 MiB; " LINE_OF_TENSORS
	  "; domain-steady [cuda:0/tensors]; refused-requests",
	  "see-peak" },
	{ "heap", true,
	  "ending; domain [heap] 300 MiB; domain-line [heap] 300 MiB of 300 MiB at train.py:77 epoch; domain-steady [heap]; refused-requests",
	  "see-peak" },
	{ "reserved", true, "ending; domain [reserved]; refused-requests", "ask-about-all" },
};

TEST(a_domain_is_told_alone)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make_device(cases[i].is_leak);
		decide(cases[i].domain);
		assert_string_equal(found_text(&verdict), cases[i].found);
		assert_advised(&verdict, cases[i].advised);
		assert_cause(&verdict, "exited"); // the program's
		assert_int_equal(strstr(verdict.text, "address space, not memory") != NULL,
		                 strcmp(cases[i].domain, "reserved") == 0);
	}
}

/* What grows is not always what holds most. */
TEST(a_small_leak_is_told_beside_the_largest_line)
{
	make_device(false);
	leaking(TENSORS0, 50, 3 * MIB);
	leaking(TENSORS0, 51, 2 * MIB);
	decide("cuda:0");
	assert_found(
		&verdict,
		"domain-line [cuda:0/tensors] 700 MiB of 705 MiB at train.py:43 epoch; domain-accumulates [cuda:0/tensors] "
		"3.0 MiB of 705 MiB at train.py:50 epoch +1, likely");
	assert_advised(&verdict, "release-blocks");
	assert_non_null(strstr(verdict.next, "the tensors of train.py:50 epoch"));
}

TEST(what_was_given_back_is_told_of_the_peak)
{
	make_device(false);
	hand.sites[3].live_bytes = hand.domains[TENSORS0].live_bytes = MIB;
	hand.sites[3].live_count = 1;
	decide("cuda:0");
	assert_found(&verdict, LINE_OF_TENSORS " (peak)");
}

/* Its own requests, with what became of them. When the end is about the domain, the verdict is. */
TEST(requests_are_those_of_the_domain)
{
	for (int is_fatal = 0; is_fatal < 2; is_fatal++) {
		make_device(false);
		exited(is_fatal);
		hand.failed = (struct model_failed){
			.bytes = 30 * MIB, .error = 2, .monotonic_ns = 40000000, .domain = TENSORS0, .site = &hand.sites[3]
		};
		hand.model.failed_count = 1;
		hand.process.failed_count = 1;
		decide("heap");
		assert_non_null(strstr(verdict.text, "No request for it was refused."));
		decide("cuda:0");
		assert_string_equal(verdict_cause_name(verdict.cause), is_fatal ? "device-memory" : "exited");
		assert_non_null(strstr(
			verdict.text, is_fatal ? "exited with status 1, likely because a request for 30.0 MiB in cuda:0/tensors"
								   : "1 request for it was refused: 1 recovered; it was for 30.0 MiB in "
									 "cuda:0/tensors at train.py:43 epoch."));
		hand.process.failed_count = 300;
		decide("heap");
		assert_non_null(strstr(verdict.text, "No request for it was refused among the last 1 of 300."));
	}
}

/* An end that is not about a device says what the largest one held; what grows there is what there is to do, if nothing else is. */
TEST(of_another_end_the_device_is_a_sentence)
{
	for (int is_leak = 0; is_leak < 2; is_leak++) {
		make_device(is_leak);
		rank_leaks_classify(&hand.model);
		verdict_decide((struct finished_model){ &hand.model }, verdict_now(), &verdict);
		assert_cause(&verdict, "exited");
		assert_found(&verdict, "; domain [cuda:0] 964 MiB; domain-parts [cuda:0] 700 MiB of 964 MiB; " LINE_OF_TENSORS);
		assert_int_equal(strstr(found_text(&verdict), GROWTH_OF_TENSORS) != NULL, is_leak);
		assert_advised(&verdict, is_leak ? "release-device-growth" : "nothing");
	}
}

/* Of PyTorch's arenas nearly all: a recording of small objects would name no line of the user's. */
TEST(what_imports_left_in_a_domain_is_said)
{
	for (unsigned i = 0; i < 2; i++) {
		hand_model_make(&hand);
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		hand_model_site(&hand, MMAP, 41, i == 0 ? 10 * MIB : 300 * MIB);
		hand_model_site(&hand, MMAP, 1, 100 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		hand_model_exited(&hand, 0);
		decide("python");
		assert_found(
			&verdict,
			i == 0 ? "domain-imports [python/arena] 100 MiB of 110 MiB; domain-line [python/arena] 10.0 MiB of "
					 "110 MiB at train.py:41 epoch (told)"
				   : "domain [python/arena] 400 MiB; domain-line [python/arena] 300 MiB of 400 MiB at train.py:41 "
					 "epoch; refused-requests");
		assert_advised(&verdict, i == 0 ? "see-peak" : "record-python-objects");
	}
}

/* Lines are in the order of what is in memory: the figures beside them must be, too. */
TEST(what_was_never_touched_is_in_no_share)
{
	struct model_site *site;

	site = hand_model_site(&hand, HEAP, 2, 2048 * MIB);
	site->untouched_bytes = hand.domains[HEAP].untouched_bytes = hand.process.untouched_bytes = 2047 * MIB;
	hand_model_site(&hand, HEAP, 6, 205 * MIB);
	exited(0);
	decide("heap");
	assert_found(
		&verdict,
		"domain [heap] 2.20 GiB; domain-in-memory [heap] 206 MiB of 2.20 GiB; domain-line [heap] 205 MiB of 206 MiB "
		"at train.py:6 epoch; ");
	assert_found(&verdict, "untouched 2.00 GiB of 2.00 GiB at train.py:2 epoch");
}

/* The same as the whole verdict says of it. */
TEST(what_may_be_a_data_set_is_told_as_such)
{
	static const char *const names[] = { "heap", "python/arena" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		hand_model_domain(&hand.domains[HEAP], names[i]);
		site = leaking(HEAP, 41, 300 * MIB);
		site->volume_bytes = site->live_bytes;
		exited(0);
		decide(names[i]);
		assert_found(&verdict, "300 MiB of 300 MiB at train.py:41 epoch (told), possible; ");
		assert_non_null(strstr(verdict.next, "; if it is a data set, no action is needed"));
	}
}

/* Sums say that they are, and how much of them was there at the same time. */
TEST(of_several_processes_it_is_a_sum)
{
	struct model_process processes[2];

	make_device(false);
	processes[0] = processes[1] = hand.process;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	hand.domains[CUDA0].holder_count = hand.domains[HEAP].holder_count = 2;
	decide("cuda:0");
	assert_non_null(strstr(verdict.text, " Its 2 processes held, in sum, 964 MiB of cuda:0 at their ends"));
	hand.domains[HEAP].peak_bytes = 800 * MIB;
	hand.domains[HEAP].together_live_bytes = 200 * MIB;
	decide("heap");
	assert_non_null(strstr(verdict.text, "at the same time at most 200 MiB and 300 MiB"));
	assert_found(&verdict, "domain-line [heap] 300 MiB of 800 MiB at train.py:77 epoch (peak)");
}

/* The launcher's shell and the workers of a loader have no part in what one process holds on a device. */
TEST(processes_that_held_none_are_not_counted)
{
	struct model_process processes[3];

	make_device(false);
	processes[0] = processes[1] = processes[2] = hand.process;
	hand.model.processes = processes;
	hand.model.process_count = 3;
	hand.domains[CUDA0].holder_count = 1;
	hand.domains[HEAP].holder_count = 2;
	decide("cuda:0");
	assert_non_null(strstr(verdict.text, " One of its 3 processes held 964 MiB of cuda:0 at its end, its peak."));
	decide("heap");
	assert_non_null(strstr(verdict.text, " 2 of its 3 processes held, in sum, 300 MiB of heap at their ends"));
}

/* Which limit it was is no matter of a domain. */
TEST(who_killed_it_is_said_of_every_domain)
{
	static const struct {
		bool is_machine;
		const char *cause, *says;
	} cases[] = {
		{ false, "container-limit", "because the container's memory limit was reached." },
		{ true, "machine-memory", "because the machine ran out of memory." },
	};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		make_device(false);
		hand_model_waited(&hand, SIGKILL);
		hand.launcher.after.cgroup_oom_kill = 1;
		hand.launcher.after.cgroup_oom = !cases[i].is_machine;
		decide("heap");
		if (strcmp(verdict_cause_name(verdict.cause), cases[i].cause) != 0 ||
		    strstr(verdict.text, cases[i].says) == NULL)
			fail_msg("%u: %s: %s", i, verdict_cause_name(verdict.cause), verdict.text);
		assert_found(&verdict, "ending; domain [heap] 300 MiB; ");
	}
}

/* Of what still runs the end is not known. */
TEST(of_processes_that_run_no_end_is_told)
{
	struct model_process processes[2];

	make_device(false);
	hand.process.state = KMEM_STATE_RUNNING;
	hand.process.is_alive = true;
	processes[0] = processes[1] = hand.process;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	hand.domains[CUDA0].holder_count = 2;
	decide("cuda:0");
	assert_cause(&verdict, "running");
	assert_non_null(strstr(verdict.text, "964 MiB of cuda:0 now, or at their ends"));
}

/* As of training on several devices at once, which holds the same on each. */
TEST(of_equal_devices_none_held_less)
{
	static struct model_domain domains[5];
	static const char *const names[] = { "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4" };

	make_device(false);
	for (unsigned i = 0; i < 5; i++)
		domains[i] = (struct model_domain){
			.name = names[i], .id = domain_id_named(names[i]), .live_bytes = 8 * MIB, .peak_bytes = 8 * MIB
		};
	hand.model.domains = domains;
	hand.model.domain_count = 2;
	hand.model.site_count = 0;
	verdict_decide((struct finished_model){ &hand.model }, verdict_now(), &verdict);
	assert_string_equal(found_text(&verdict), "ending; domain [cuda:0] 8.0 MiB; more-domains +1");
	hand.model.domain_count = 5;
	domains[4].peak_bytes = domains[4].live_bytes = 4 * MIB;
	verdict_decide((struct finished_model){ &hand.model }, verdict_now(), &verdict);
	assert_string_equal(found_text(&verdict), "ending; domain [cuda:0] 8.0 MiB; more-domains +4");
	assert_non_null(strstr(verdict.text, " 4 more devices held no more."));
	decide("cuda");
	assert_found(&verdict, "domain [cuda:3] 8.0 MiB; domain-steady [cuda:3]; more-domains +1");
}

/* Four devices, long names, a line that grows beside the largest on each: the last sentence is whole. */
TEST(long_names_are_not_cut_off)
{
	static char name[200];
	static const char *const names[] = { "cuda:0", "cuda:1", "cuda:2", "cuda:3" };

	memset(name, 'f', sizeof(name) - 1);
	hand_model_make(&hand);
	for (unsigned i = 0; i < 4; i++) {
		hand_model_domain(&hand.domains[i], names[i]);
		hand_model_site(&hand, i, 41, 700 * MIB);
		leaking(i, 42, 600 * MIB);
		hand.frames[2 * i][2].function = hand.frames[2 * i + 1][2].function = name;
		hand.frames[2 * i][2].file = hand.frames[2 * i + 1][2].file = name;
	}
	exited(0);
	decide("cuda");
	assert_non_null(strstr(verdict.text, "The process held 1.27 GiB of cuda:3"));
	assert_string_equal(verdict.text + strlen(verdict.text) - strlen(" No request for it was refused."),
	                    " No request for it was refused.");
}

/* Refused where nothing was ever held: another device is no help where none was asked. */
TEST(of_nothing_the_next_thing_fits_the_domain)
{
	static const struct {
		const char *name, *wanted, *advised, *next;
	} of[] = {
		{ "cuda:0", "cuda:0", "see-other-users", "nvidia-smi what else uses cuda:0" },
		{ "cuda:0", "cuda", "see-other-users", "CUDA_VISIBLE_DEVICES" },
		{ "hip:1", "hip", "see-other-users", "rocm-smi what else uses hip:1" },
		{ "cuda/pinned", "cuda/pinned", "ask-about-all", "kmemshim why" },
		{ "cuda/pinned", "cuda", "ask-about-all", "kmemshim why" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(of); i++) {
		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 77, 300 * MIB);
		hand_model_domain(&hand.domains[CUDA0], of[i].name);
		exited(0);
		decide(of[i].wanted);
		assert_int_equal(strncmp(found_text(&verdict), "ending; domain [", 16), 0);
		assert_non_null(strstr(found_text(&verdict), "]; refused-requests"));
		assert_advised(&verdict, of[i].advised);
		assert_non_null(strstr(verdict.next, of[i].next));
	}
}

/* What is free in arenas is told first where it is most of the memory; else the line that is not much smaller. */
TEST(free_arenas_are_told_where_they_are_most)
{
	static const uint64_t free_bytes[] = { 190 * MIB, 50 * MIB };

	for (unsigned i = 0; i < ARRAY_LEN(free_bytes); i++) {
		hand_model_make(&hand);
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		hand_model_site(&hand, MMAP, 40, free_bytes[i])->is_rest_of_arenas = true;
		(void)hand_model_site(&hand, HEAP, 41, 49 * MIB);
		(void)hand_model_site(&hand, HEAP, 42, 20 * MIB);
		verdict_waited(SIGKILL);
		assert_int_equal(strstr(verdict.text, " was kept by Python, though ") != NULL, i == 0);
		assert_int_equal(strstr(verdict.text, "allocated at train.py:41 epoch") != NULL, i == 1);
	}
}

/* Nothing but arenas: `peak` has no line of them to show, whatever they were called. */
TEST(of_arenas_the_next_thing_is_their_objects)
{
	static const char *const names[] = { "python", "python/arena" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		make_device(false);
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		hand_model_site(&hand, MMAP, 0, 64 * MIB);
		decide(names[i]);
		assert_found(&verdict, "domain [python/arena] 64.0 MiB");
		assert_not_found(&verdict, "domain-steady");
		assert_advised(&verdict, "record-python-objects");
	}
}

/* A machine may have 32 devices: the largest are told. */
TEST(of_many_domains_the_largest_are_told)
{
	static struct model_domain domains[9];
	static char names[9][8];

	make_device(false);
	for (unsigned i = 0; i < 9; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "cuda:%u", i);
		domains[i] = (struct model_domain){ .name = names[i],
			                                .id = domain_id_named(names[i]),
			                                .live_bytes = (i * 5 % 9) * MIB,
			                                .peak_bytes = (i * 5 % 9) * MIB };
	}
	hand.model.domains = domains;
	hand.model.domain_count = 9;
	hand.model.site_count = 0;
	verdict_decide((struct finished_model){ &hand.model }, verdict_now(), &verdict);
	assert_string_equal(found_text(&verdict), "ending; domain [cuda:7] 8.0 MiB; more-domains +7");
	decide("cuda");
	assert_found(
		&verdict,
		"domain [cuda:7] 8.0 MiB; domain-steady [cuda:7]; domain [cuda:5] 7.0 MiB; domain-steady [cuda:5]; domain "
		"[cuda:3] 6.0 MiB; domain-steady [cuda:3]; domain [cuda:1] 5.0 MiB; domain-steady [cuda:1]; more-domains +5");
}

RUN_TESTS(verdict_case_begin, NULL)
