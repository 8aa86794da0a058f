/*
 * test_verdict_domain.c - is what is said about one domain alone true of that domain, and about nothing else?
 */
#include "verdict_case.h"

/* What is said of one domain: findings and advice as of decided(). */
#define of_domain(domain, found, advised)                                                               \
	do {                                                                                                \
		rank_leaks_classify(&hand.model);                                                               \
		verdict_decide_domain((struct finished_model){ &hand.model }, verdict_now(), domain, &verdict); \
		check_told(found, advised);                                                                     \
	} while (0)

#define ENDED "closed 0; process ended_monotonic_ns=50ms; "
/* Tensors of one line that is a leak or not, in memory of the device, beside NCCL's; and a heap that has nothing to do with it. */
#define DEVICE(gens)                                                                                        \
	"heap:77 300M; cuda0:41 900M module=libc10_cuda.so; cuda0:42 64M module=libnccl.so.2; tensors:43 700M " \
	"gens=" gens "; " ENDED
#define STEADY DEVICE("1/12/0/3")
#define LEAKS DEVICE("12/12/3/3")
#define PARTS_OF_DEVICE "domain [cuda:0] 964 MiB; domain-parts [cuda:0] 700 MiB of 964 MiB; " LINE_OF_TENSORS
#define LINE_OF_TENSORS "domain-line [cuda:0/tensors] 700 MiB of 700 MiB at train.py:43 epoch"
#define GROWTH_OF_TENSORS "domain-accumulates [cuda:0/tensors] 700 MiB of 700 MiB at train.py:43 epoch (told), likely"

TEST(a_domain_is_told_alone)
{
	static const char *const cases[][4] = {
		{ "cuda:0", LEAKS, "=ending; " PARTS_OF_DEVICE "; " GROWTH_OF_TENSORS "; refused-requests", "release-blocks" },
		{ "cuda", LEAKS, "=ending; " PARTS_OF_DEVICE "; " GROWTH_OF_TENSORS "; refused-requests", "release-blocks" },
		{ "cuda:0/tensors", LEAKS,
		  "=ending; domain [cuda:0/tensors] 700 MiB; " LINE_OF_TENSORS "; " GROWTH_OF_TENSORS "; refused-requests",
		  "release-blocks" },
		{ "cuda:0", STEADY, "=ending; " PARTS_OF_DEVICE "; domain-steady [cuda:0/tensors]; refused-requests",
		  "see-peak" },
		{ "heap", LEAKS,
		  "=ending; domain [heap] 300 MiB; domain-line [heap] 300 MiB of 300 MiB at train.py:77 epoch; domain-steady [heap]; "
		  "refused-requests",
		  "see-peak" },
		{ "reserved", LEAKS, "=ending; domain [reserved]; refused-requests", "ask-about-all" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scene("%s", cases[i][1]);
		of_domain(cases[i][0], cases[i][2], cases[i][3]);
		assert_cause(&verdict, "exited"); // the program's
		said(strcmp(cases[i][0], "reserved") == 0 ? "address space, not memory" : "!address space, not memory");
	}
}

/* What grows is not always what holds most. */
TEST(a_small_leak_is_told_beside_the_largest_line)
{
	scene(STEADY "tensors:50 3M leak; tensors:51 2M leak");
	of_domain(
		"cuda:0",
		"domain-line [cuda:0/tensors] 700 MiB of 705 MiB at train.py:43 epoch; domain-accumulates [cuda:0/tensors] "
		"3.0 MiB of 705 MiB at train.py:50 epoch +1, likely",
		"release-blocks");
	next("the tensors of train.py:50 epoch");
}

TEST(what_was_given_back_is_told_of_the_peak)
{
	scene(STEADY "last live_bytes=1M live_count=1; domain tensors live_bytes=1M");
	of_domain("cuda:0", LINE_OF_TENSORS " (peak)", NULL);
}

/* Its own requests, with what became of them. When the end is about the domain, the verdict is. */
TEST(requests_are_those_of_the_domain)
{
	for (int is_fatal = 0; is_fatal < 2; is_fatal++) {
		scene(STEADY "process exit_code=%d failed_count=1; refuse 30M error=2 monotonic_ns=40ms of=tensors at=3",
		      is_fatal);
		of_domain("heap", NULL, NULL);
		said("No request for it was refused.");
		of_domain("cuda:0", NULL, NULL);
		assert_cause(&verdict, is_fatal ? "device-memory" : "exited");
		said(is_fatal ? "exited with status 1, likely because a request for 30.0 MiB in cuda:0/tensors"
		              : "1 request for it was refused: 1 recovered; it was for 30.0 MiB in "
		                "cuda:0/tensors at train.py:43 epoch.");
		hand.process.failed_count = 300;
		of_domain("heap", NULL, NULL);
		said("No request for it was refused among the last 1 of 300.");
	}
}

/* An end that is not about a device says what the largest one held; what grows there is what there is to do, if nothing else is. */
TEST(of_another_end_the_device_is_a_sentence)
{
	told("; " PARTS_OF_DEVICE "; " GROWTH_OF_TENSORS, "release-device-growth", LEAKS);
	assert_cause(&verdict, "exited");
	told("; " PARTS_OF_DEVICE, "nothing", STEADY);
	assert_not_found(&verdict, GROWTH_OF_TENSORS);
}

/* Of PyTorch's arenas nearly all: a recording of small objects would name no line of the user's. */
TEST(what_imports_left_in_a_domain_is_said)
{
#define ARENAS "name mmap python/arena; mmap:41 %uM; mmap:1 100M import; exit 0"
	scene(ARENAS, 10);
	of_domain("python",
	          "domain-imports [python/arena] 100 MiB of 110 MiB; domain-line [python/arena] 10.0 MiB of "
	          "110 MiB at train.py:41 epoch (told)",
	          "see-peak");
	scene(ARENAS, 300);
	of_domain("python",
	          "domain [python/arena] 400 MiB; domain-line [python/arena] 300 MiB of 400 MiB at train.py:41 "
	          "epoch; refused-requests",
	          "record-python-objects");
}

/* Lines are in the order of what is in memory: the figures beside them must be, too. */
TEST(what_was_never_touched_is_in_no_share)
{
	scene("heap:2 2048M untouched=2047M; heap:6 205M; " ENDED);
	of_domain(
		"heap",
		"domain [heap] 2.20 GiB; domain-in-memory [heap] 206 MiB of 2.20 GiB; domain-line [heap] 205 MiB of 206 MiB "
		"at train.py:6 epoch; ",
		NULL);
	assert_found(&verdict, "untouched 2.00 GiB of 2.00 GiB at train.py:2 epoch");
}

/* The same as the whole verdict says of it. */
TEST(what_may_be_a_data_set_is_told_as_such)
{
	static const char *const names[] = { "heap", "python/arena" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		scene("name heap %s; heap:41 300M leak volume_bytes=300M; " ENDED, names[i]);
		of_domain(names[i], "300 MiB of 300 MiB at train.py:41 epoch (told), possible; ", NULL);
		next("; if it is a data set, no action is needed");
	}
}

/* Sums say that they are, and how much of them was there at the same time. */
TEST(of_several_processes_it_is_a_sum)
{
	scene(STEADY "child parent=-1; domain cuda0 holder_count=2; domain heap holder_count=2");
	of_domain("cuda:0", NULL, NULL);
	said(" Its 2 processes held, in sum, 964 MiB of cuda:0 at their ends");
	scene_add(&hand, "domain heap peak_bytes=800M together_live_bytes=200M");
	of_domain("heap", "domain-line [heap] 300 MiB of 800 MiB at train.py:77 epoch (peak)", NULL);
	said("at the same time at most 200 MiB and 300 MiB");
}

/* The launcher's shell and the workers of a loader have no part in what one process holds on a device. */
TEST(processes_that_held_none_are_not_counted)
{
	scene(STEADY "child parent=-1; child parent=-1; domain cuda0 holder_count=1; domain heap holder_count=2");
	of_domain("cuda:0", NULL, NULL);
	said(" One of its 3 processes held 964 MiB of cuda:0 at its end, its peak.");
	of_domain("heap", NULL, NULL);
	said(" 2 of its 3 processes held, in sum, 300 MiB of heap at their ends");
}

/* Which limit it was is no matter of a domain. */
TEST(who_killed_it_is_said_of_every_domain)
{
#define KILLED STEADY "killed; after cgroup_oom_kill=1 cgroup_oom=%u"
	scene(KILLED, 1);
	of_domain("heap", "ending; domain [heap] 300 MiB; ", NULL);
	assert_cause(&verdict, "container-limit");
	said("because the container's memory limit was reached.");
	scene(KILLED, 0);
	of_domain("heap", "ending; domain [heap] 300 MiB; ", NULL);
	assert_cause(&verdict, "machine-memory");
	said("because the machine ran out of memory.");
}

/* Of what still runs the end is not known. */
TEST(of_processes_that_run_no_end_is_told)
{
	scene(STEADY "alive; process state=%u; child parent=-1; domain cuda0 holder_count=2", KMEM_STATE_RUNNING);
	of_domain("cuda:0", NULL, NULL);
	assert_cause(&verdict, "running");
	said("964 MiB of cuda:0 now, or at their ends");
}

/* So many devices; the model's domains are these alone. */
static void
have_devices(unsigned count, const unsigned *mib)
{
	static struct model_domain domains[9];
	static char names[9][8];

	scene(STEADY);
	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "cuda:%u", i);
		domains[i] = (struct model_domain){
			.name = names[i], .id = domain_id_named(names[i]), .live_bytes = mib[i] * MIB, .peak_bytes = mib[i] * MIB
		};
	}
	hand.model.domains = domains;
	hand.model.domain_count = count;
	hand.model.site_count = 0;
}

/* As of training on several devices at once, which holds the same on each. */
TEST(of_equal_devices_none_held_less)
{
	have_devices(2, (const unsigned[]){ 8, 8 });
	decided("=ending; domain [cuda:0] 8.0 MiB; more-domains +1", NULL);
	have_devices(5, (const unsigned[]){ 8, 8, 8, 8, 4 });
	decided("=ending; domain [cuda:0] 8.0 MiB; more-domains +4", NULL);
	said(" 4 more devices held no more.");
	of_domain("cuda", "domain [cuda:3] 8.0 MiB; domain-steady [cuda:3]; more-domains +1", NULL);
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
	scene_add(&hand, ENDED);
	of_domain("cuda", NULL, NULL);
	assert_non_null(strstr(verdict.text, "The process held 1.27 GiB of cuda:3"));
	assert_string_equal(verdict.text + strlen(verdict.text) - strlen(" No request for it was refused."),
	                    " No request for it was refused.");
}

/* Refused where nothing was ever held: another device is no help where none was asked. */
TEST(of_nothing_the_next_thing_fits_the_domain)
{
	static const char *const of[][4] = {
		{ "cuda:0", "cuda:0", "see-other-users", "nvidia-smi what else uses cuda:0" },
		{ "cuda:0", "cuda", "see-other-users", "CUDA_VISIBLE_DEVICES" },
		{ "hip:1", "hip", "see-other-users", "rocm-smi what else uses hip:1" },
		{ "cuda/pinned", "cuda/pinned", "ask-about-all", "kmemshim why" },
		{ "cuda/pinned", "cuda", "ask-about-all", "kmemshim why" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(of); i++) {
		scene("heap:77 300M; name cuda0 %s; " ENDED, of[i][0]);
		of_domain(of[i][1], "^ending; domain [", of[i][2]);
		assert_found(&verdict, "]; refused-requests");
		next(of[i][3]);
	}
}

/* What is free in arenas is told first where it is most of the memory; else the line that is not much smaller. */
TEST(free_arenas_are_told_where_they_are_most)
{
#define FREE "name mmap python/arena; mmap:40 %uM is_rest_of_arenas=1; heap:41 49M; heap:42 20M; killed"
	told(NULL, NULL, FREE, 190);
	said(" was kept by Python, though ");
	said("!allocated at train.py:41 epoch");
	told(NULL, NULL, FREE, 50);
	said("! was kept by Python, though ");
	said("allocated at train.py:41 epoch");
}

/* Nothing but arenas: `peak` has no line of them to show, whatever they were called. */
TEST(of_arenas_the_next_thing_is_their_objects)
{
	static const char *const names[] = { "python", "python/arena" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		scene(STEADY "name mmap python/arena; mmap:0 64M");
		of_domain(names[i], "domain [python/arena] 64.0 MiB", "record-python-objects");
		assert_not_found(&verdict, "domain-steady");
	}
}

/* A machine may have 32 devices: the largest are told. */
TEST(of_many_domains_the_largest_are_told)
{
	have_devices(9, (const unsigned[]){ 0, 5, 1, 6, 2, 7, 3, 8, 4 });
	decided("=ending; domain [cuda:7] 8.0 MiB; more-domains +7", NULL);
	of_domain(
		"cuda",
		"domain [cuda:7] 8.0 MiB; domain-steady [cuda:7]; domain [cuda:5] 7.0 MiB; domain-steady [cuda:5]; domain "
		"[cuda:3] 6.0 MiB; domain-steady [cuda:3]; domain [cuda:1] 5.0 MiB; domain-steady [cuda:1]; more-domains +5",
		NULL);
}

RUN_TESTS(verdict_case_begin, NULL)
