/*
 * test_verdict_domain.c - is what is said about one domain alone true of that domain, and about nothing else?
 */
#include "hand_model.h"

#include "verdict/verdict.h"

static struct hand_model hand;
static struct verdict verdict;

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
	verdict_decide_domain((struct judged_model){ &hand.model }, verdict_now(), domain, &verdict);
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

static const struct {
	const char *domain;
	bool is_leak;
	const char *says, *never, *next;
} cases[] = {
	{ "cuda:0", true,
	  " exited normally, with status 0. Of cuda:0 it held 964 MiB at the end, its peak. That is 700 MiB tensors, "
	  "200 MiB cached by PyTorch, 64.0 MiB NCCL. 700 MiB of the tensors (100 %) was allocated at train.py:43 epoch. It accumulates: "
	  "700 MiB in blocks from 12 of 12 generations are still alive. No request for it was refused.",
	  "heap", "loss.item()" },
	{ "cuda", true, "Of cuda:0 it held 964 MiB", "Of cuda:0/tensors", "loss.item()" },
	{ "cuda:0/tensors", true, "Of cuda:0/tensors it held 700 MiB at the end, its peak. 700 MiB of the tensors (100 %)",
	  "NCCL", "loss.item()" },
	{ "cuda:0", false, "No line of it is known to accumulate.", "It accumulates",
	  "`kmemshim peak kmemshim.out/python.4242.1.kmem --domain cuda:0` shows which lines held most of it" },
	{ "heap", true,
	  "Of heap it held 300 MiB at the end, its peak. 300 MiB of it (100 %) was allocated at train.py:77 epoch. No line of "
	  "it is known to accumulate.",
	  "cuda", "--domain heap`" },
	{ "reserved", true, "Of reserved (address space, not memory) nothing was held.", "cuda",
	  "`kmemshim why kmemshim.out/python.4242.1.kmem` tells of the whole program" },
};

static void
a_domain_is_told_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make_device(cases[i].is_leak);
		decide(cases[i].domain);
		if (strstr(verdict.text, cases[i].says) == NULL || strstr(verdict.text, cases[i].never) != NULL ||
		    strstr(verdict.next, cases[i].next) == NULL)
			print_error("case %zu: %s\nNext: %s\n", i, verdict.text, verdict.next);
		assert_non_null(strstr(verdict.text, cases[i].says));
		assert_null(strstr(verdict.text, cases[i].never));
		assert_non_null(strstr(verdict.next, cases[i].next));
		assert_string_equal(verdict_cause_name(verdict.cause), "exited"); // the program's
	}
}

/* What grows is not always what holds most. */
static void
a_small_leak_is_told_beside_the_largest_line(void **state)
{
	struct model_site *site;

	(void)state;
	make_device(false);
	site = hand_model_site(&hand, TENSORS0, 50, 3 * MIB);
	hand_model_generations(site, 12, 12, 3, 3);
	site = hand_model_site(&hand, TENSORS0, 51, 2 * MIB);
	hand_model_generations(site, 12, 12, 3, 3);
	decide("cuda:0");
	assert_non_null(strstr(
		verdict.text, "(99 %) was allocated at train.py:43 epoch. What is allocated at train.py:50 epoch accumulates: "
					  "3.0 MiB in blocks from 12 of 12 generations are still alive; 1 more line accumulates."));
	assert_non_null(strstr(verdict.next, "look for what keeps the tensors of train.py:50 epoch alive"));
}

static void
what_was_given_back_is_told_of_the_peak(void **state)
{
	(void)state;
	make_device(false);
	hand.sites[3].live_bytes = hand.domains[TENSORS0].live_bytes = MIB;
	hand.sites[3].live_count = 1;
	decide("cuda:0");
	assert_non_null(
		strstr(verdict.text, " At the peak 700 MiB of the tensors (100 %) was allocated at train.py:43 epoch."));
}

/* Its own requests, with what became of them. When the end is about the domain, the verdict is. */
static void
requests_are_those_of_the_domain(void **state)
{
	(void)state;
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
		assert_non_null(strstr(verdict.text, is_fatal
		                                         ? "exited with status 1 after a request for 30.0 MiB in cuda:0/tensors"
		                                         : "1 request for it was refused: 1 recovered; it was for 30.0 MiB in "
		                                           "cuda:0/tensors at train.py:43 epoch."));
		hand.process.failed_count = 300;
		decide("heap");
		assert_non_null(strstr(verdict.text, "No request for it was refused among the last 1 of 300."));
	}
}

/* An end that is not about a device says what the largest one held; what grows there is what there is to do, if nothing else is. */
static void
of_another_end_the_device_is_a_sentence(void **state)
{
	(void)state;
	for (int is_leak = 0; is_leak < 2; is_leak++) {
		make_device(is_leak);
		rank_leaks_classify(&hand.model);
		verdict_decide((struct judged_model){ &hand.model }, verdict_now(), &verdict);
		assert_string_equal(verdict_cause_name(verdict.cause), "exited");
		assert_non_null(
			strstr(verdict.text,
		           " Of cuda:0 it held 964 MiB at the end, its peak. That is 700 MiB tensors, 200 MiB cached by "
		           "PyTorch, 64.0 MiB NCCL. 700 MiB of the tensors (100 %) was allocated at train.py:43 epoch."));
		assert_int_equal(strstr(verdict.text, "It accumulates: 700 MiB in blocks from 12 of 12 generations") != NULL,
		                 is_leak);
		assert_non_null(
			strstr(verdict.next, is_leak ? "the tensors of train.py:43 epoch alive" : "no action is needed"));
	}
}

/* Of PyTorch's arenas nearly all: a recording of small objects would name no line of the user's. */
static void
what_imports_left_in_a_domain_is_said(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		hand_model_make(&hand);
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		hand_model_site(&hand, MMAP, 41, i == 0 ? 10 * MIB : 300 * MIB);
		hand_model_site(&hand, MMAP, 1, 100 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		hand_model_exited(&hand, 0);
		decide("python");
		assert_int_equal(
			strstr(verdict.text,
		           "100 MiB of it (91 %) was left by imports. The rest is arenas of small Python objects") != NULL,
			i == 0);
		assert_int_equal(
			strstr(verdict.text, " It is arenas of small Python objects, of which no line is known.") != NULL, i == 1);
		assert_int_equal(strstr(verdict.next, "record small Python objects too") != NULL, i == 1);
	}
}

/* Lines are in the order of what is in memory: the figures beside them must be, too. */
static void
what_was_never_touched_is_in_no_share(void **state)
{
	struct model_site *site;

	(void)state;
	hand_model_make(&hand);
	site = hand_model_site(&hand, HEAP, 2, 2048 * MIB);
	site->untouched_bytes = hand.domains[HEAP].untouched_bytes = hand.process.untouched_bytes = 2047 * MIB;
	hand_model_site(&hand, HEAP, 6, 205 * MIB);
	exited(0);
	decide("heap");
	assert_non_null(
		strstr(verdict.text,
	           " Of heap it held 2.2 GiB at the end, its peak. 206 MiB of it was in memory. 205 MiB of that (100 %) "
	           "was allocated at train.py:6 epoch."));
	assert_non_null(
		strstr(verdict.text, " Of the 2.0 GiB that train.py:2 epoch asked for, only 1.0 MiB was in memory."));
}

/* The same as the whole verdict says of it. */
static void
what_may_be_a_data_set_is_told_as_such(void **state)
{
	static const char *const names[] = { "heap", "python/arena" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		struct model_site *site;

		hand_model_make(&hand);
		hand_model_domain(&hand.domains[HEAP], names[i]);
		site = hand_model_site(&hand, HEAP, 41, 300 * MIB);
		hand_model_generations(site, 12, 12, 3, 3);
		site->volume_bytes = site->live_bytes;
		exited(0);
		decide(names[i]);
		assert_non_null(strstr(
			verdict.text, " It accumulates, or it is a one-time load (little else was allocated meanwhile): 300 MiB in "
						  "blocks from 12 of 12 generations are still alive."));
		assert_non_null(strstr(verdict.next, "; if it is a data set, no action is needed"));
	}
}

/* Sums say that they are, and how much of them was there at the same time. */
static void
of_several_processes_it_is_a_sum(void **state)
{
	struct model_process processes[2];

	(void)state;
	make_device(false);
	processes[0] = processes[1] = hand.process;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	hand.domains[CUDA0].holder_count = hand.domains[HEAP].holder_count = 2;
	decide("cuda:0");
	assert_non_null(
		strstr(verdict.text, "Of cuda:0 its 2 processes held, in sum, 964 MiB at their ends, which were their peaks."));
	hand.domains[HEAP].peak_bytes = 800 * MIB;
	hand.domains[HEAP].together_live_bytes = 200 * MIB;
	decide("heap");
	assert_non_null(strstr(
		verdict.text, "Of heap its 2 processes held, in sum, 300 MiB at their ends and 800 MiB at their peaks; at the "
					  "same time at most 200 MiB and 300 MiB. At the peaks 300 MiB of it (38 %)"));
}

/* The launcher's shell and the workers of a loader have no part in what one process holds on a device. */
static void
processes_that_held_none_are_not_counted(void **state)
{
	struct model_process processes[3];

	(void)state;
	make_device(false);
	processes[0] = processes[1] = processes[2] = hand.process;
	hand.model.processes = processes;
	hand.model.process_count = 3;
	hand.domains[CUDA0].holder_count = 1;
	hand.domains[HEAP].holder_count = 2;
	decide("cuda:0");
	assert_non_null(strstr(verdict.text, "Of cuda:0 one of its 3 processes held 964 MiB at its end, its peak."));
	decide("heap");
	assert_non_null(strstr(verdict.text, "Of heap 2 of its 3 processes held, in sum, 300 MiB at their ends"));
}

/* Which limit it was is no matter of a domain. */
static void
who_killed_it_is_said_of_every_domain(void **state)
{
	static const struct {
		bool is_machine;
		const char *cause, *says;
	} cases[] = {
		{ false, "container-limit",
		  "train.py (pid 4242) was killed by the kernel because the container's memory limit was reached "
		  "(certain: the cgroup's oom_kill counter rose from 0 to 1). Of heap it held 300 MiB" },
		{ true, "machine-memory",
		  "train.py (pid 4242) was killed by the kernel because the machine ran out of memory (certain: the cgroup's "
		  "oom_kill counter rose from 0 to 1). Of heap it held 300 MiB" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		make_device(false);
		hand_model_waited(&hand, SIGKILL);
		hand.launcher.after.cgroup_oom_kill = 1;
		hand.launcher.after.cgroup_oom = !cases[i].is_machine;
		decide("heap");
		if (strcmp(verdict_cause_name(verdict.cause), cases[i].cause) != 0 ||
		    strstr(verdict.text, cases[i].says) == NULL)
			fail_msg("%u: %s: %s", i, verdict_cause_name(verdict.cause), verdict.text);
	}
}

/* Of what still runs the end is not known. */
static void
of_processes_that_run_no_end_is_told(void **state)
{
	struct model_process processes[2];

	(void)state;
	make_device(false);
	hand.process.state = KMEM_STATE_RUNNING;
	hand.process.is_alive = true;
	processes[0] = processes[1] = hand.process;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	hand.domains[CUDA0].holder_count = 2;
	decide("cuda:0");
	assert_non_null(strstr(
		verdict.text, "is still running. Of cuda:0 its 2 processes held, in sum, 964 MiB now, or at their ends, which "
					  "were their peaks."));
}

/* As of training on several devices at once, which holds the same on each. */
static void
of_equal_devices_none_held_less(void **state)
{
	static struct model_domain domains[5];
	static const char *const names[] = { "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4" };

	(void)state;
	make_device(false);
	for (unsigned i = 0; i < 5; i++)
		domains[i] = (struct model_domain){
			.name = names[i], .id = domain_id_named(names[i]), .live_bytes = 8 * MIB, .peak_bytes = 8 * MIB
		};
	hand.model.domains = domains;
	hand.model.domain_count = 2;
	hand.model.site_count = 0;
	verdict_decide((struct judged_model){ &hand.model }, verdict_now(), &verdict);
	assert_non_null(
		strstr(verdict.text, " Of cuda:0 it held 8.0 MiB at the end, its peak. 1 more device held as much."));
	domains[1].peak_bytes = domains[1].live_bytes = 4 * MIB;
	verdict_decide((struct judged_model){ &hand.model }, verdict_now(), &verdict);
	assert_non_null(strstr(verdict.text, " 1 more device held less."));
	domains[1].peak_bytes = domains[1].live_bytes = 8 * MIB;
	hand.model.domain_count = 5;
	domains[4].peak_bytes = domains[4].live_bytes = 4 * MIB;
	verdict_decide((struct judged_model){ &hand.model }, verdict_now(), &verdict);
	assert_non_null(strstr(verdict.text, " 4 more devices held as much or less."));
	decide("cuda");
	assert_non_null(strstr(verdict.text, " 1 more domain held less."));
}

/* Four devices, long names, a line that grows beside the largest on each: the last sentence is whole. */
static void
long_names_are_not_cut_off(void **state)
{
	static char name[200];
	static const char *const names[] = { "cuda:0", "cuda:1", "cuda:2", "cuda:3" };

	(void)state;
	memset(name, 'f', sizeof(name) - 1);
	hand_model_make(&hand);
	for (unsigned i = 0; i < 4; i++) {
		hand_model_domain(&hand.domains[i], names[i]);
		hand_model_site(&hand, i, 41, 700 * MIB);
		hand_model_generations(hand_model_site(&hand, i, 42, 600 * MIB), 12, 12, 3, 3);
		hand.frames[2 * i][2].function = hand.frames[2 * i + 1][2].function = name;
		hand.frames[2 * i][2].file = hand.frames[2 * i + 1][2].file = name;
	}
	exited(0);
	decide("cuda");
	assert_non_null(strstr(verdict.text, "Of cuda:3 it held 1.3 GiB"));
	assert_string_equal(verdict.text + strlen(verdict.text) - strlen(" No request for it was refused."),
	                    " No request for it was refused.");
}

/* Refused where nothing was ever held: another device is no help where none was asked. */
static void
of_nothing_the_next_thing_fits_the_domain(void **state)
{
	static const struct {
		const char *name, *wanted, *next;
	} of[] = {
		{ "cuda:0", "cuda:0",
		  "see with nvidia-smi what else uses cuda:0, or take another device (CUDA_VISIBLE_DEVICES)" },
		{ "cuda:0", "cuda",
		  "see with nvidia-smi what else uses cuda:0, or take another device (CUDA_VISIBLE_DEVICES)" },
		{ "hip:1", "hip", "see with rocm-smi what else uses hip:1, or take another device (HIP_VISIBLE_DEVICES)" },
		{ "cuda/pinned", "cuda/pinned", "`kmemshim why kmemshim.out/python.4242.1.kmem` tells of the whole program" },
		{ "cuda/pinned", "cuda", "`kmemshim why kmemshim.out/python.4242.1.kmem` tells of the whole program" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(of); i++) {
		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 77, 300 * MIB);
		hand_model_domain(&hand.domains[CUDA0], of[i].name);
		exited(0);
		decide(of[i].wanted);
		assert_non_null(strstr(verdict.text, "nothing was held."));
		assert_string_equal(verdict.next, of[i].next);
	}
}

/* Nothing but arenas: `peak` has no line of them to show, whatever they were called. */
static void
of_arenas_the_next_thing_is_their_objects(void **state)
{
	static const char *const names[] = { "python", "python/arena" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		make_device(false);
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		hand_model_site(&hand, MMAP, 0, 64 * MIB);
		decide(names[i]);
		assert_non_null(strstr(verdict.text, "Of python/arena it held 64.0 MiB"));
		assert_null(strstr(verdict.text, "No line of it"));
		assert_non_null(strstr(verdict.next, "--python-objects"));
	}
}

/* A machine may have 32 devices: the largest are told. */
static void
of_many_domains_the_largest_are_told(void **state)
{
	static struct model_domain domains[9];
	static char names[9][8];

	(void)state;
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
	verdict_decide((struct judged_model){ &hand.model }, verdict_now(), &verdict);
	assert_non_null(strstr(verdict.text, " Of cuda:7 it held 8.0 MiB at the end, its peak. 7 more devices held less."));
	decide("cuda");
	assert_non_null(strstr(verdict.text, "Of cuda:7 it held 8.0 MiB"));
	assert_true(strstr(verdict.text, "Of cuda:7") < strstr(verdict.text, "Of cuda:5"));
	assert_non_null(strstr(verdict.text, "Of cuda:1 it held 5.0 MiB at the end, its peak."));
	assert_null(strstr(verdict.text, "4.0 MiB"));
	assert_non_null(strstr(verdict.text, " 5 more domains held less."));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_domain_is_told_alone),
		cmocka_unit_test(a_small_leak_is_told_beside_the_largest_line),
		cmocka_unit_test(what_was_given_back_is_told_of_the_peak),
		cmocka_unit_test(requests_are_those_of_the_domain),
		cmocka_unit_test(of_another_end_the_device_is_a_sentence),
		cmocka_unit_test(what_imports_left_in_a_domain_is_said),
		cmocka_unit_test(what_was_never_touched_is_in_no_share),
		cmocka_unit_test(what_may_be_a_data_set_is_told_as_such),
		cmocka_unit_test(of_several_processes_it_is_a_sum),
		cmocka_unit_test(processes_that_held_none_are_not_counted),
		cmocka_unit_test(who_killed_it_is_said_of_every_domain),
		cmocka_unit_test(of_processes_that_run_no_end_is_told),
		cmocka_unit_test(of_equal_devices_none_held_less),
		cmocka_unit_test(long_names_are_not_cut_off),
		cmocka_unit_test(of_nothing_the_next_thing_fits_the_domain),
		cmocka_unit_test(of_arenas_the_next_thing_is_their_objects),
		cmocka_unit_test(of_many_domains_the_largest_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
