/*
 * commands.c - which commands are there, and what does their help say?
 */
#include <string.h>

#include "analysis/rank.h"
#include "cli/cmd_report.h"
#include "cli/command.h"

#define CAPTURE_HELP                                                                                                                \
	"CAPTURE is a .kmem file, a folder of them, or the number of a recorded process that runs; without it, the newest session in\n" \
	"./kmemshim.out.\n"
#define TAKES(id) OPTION_BIT(OPTION_##id)
#define OPTIONS_OF_READERS (TAKES(SALVAGE) | TAKES(SYSROOT) | TAKES(PROJECT) | TAKES(WRAPPERS))
#define OPTIONS_OF_TABLES                                                                                        \
	(OPTIONS_OF_READERS | TAKES(JSON) | TAKES(TOP) | TAKES(DOMAIN) | TAKES(NATIVE) | TAKES(KERNEL) | TAKES(AT) | \
	 TAKES(PHASE))
#define ROWS_TO_CHOOSE                                           \
	{                                                            \
		[OPTION_BY] = "line function file module package thread" \
	}
/* A command that prints a table of lines. */
#define VIEW(question_, more_)                                                                                   \
	.options = OPTIONS_OF_TABLES | TAKES(BY) | (more_),                                                          \
	.words = { [OPTION_BY] = { NULL, "a row is a line (default), function, file, module, package or thread" } }, \
	.choices = ROWS_TO_CHOOSE, .arguments_max = 1, .question = &(question_), .run = cmd_report
#define OPTIONS_OF_RUNS (OPTIONS_OF_READERS | TAKES(DOMAIN) | TAKES(RUNS) | TAKES(PROGRAM))

static const struct question tree = { &rank_peak, 0, false, cmd_report_tree, 0 };
static const struct question waste = { &rank_sites, 5, false, cmd_report_waste, 0 };
static const struct question annotate = { &rank_sites, 0, false, cmd_report_annotate, 1 };
static const struct question page = { &rank_peak, CMD_REPORT_PAGE_TOP, false, cmd_report_page, 0 };
static const struct question why = { &rank_peak, 0, true, cmd_report_verdict, 0 };
static const struct question peak = { &rank_peak, CMD_REPORT_TABLE_TOP, false, cmd_report_table, 0 };
static const struct question leaks = { &rank_leaks, CMD_REPORT_TABLE_TOP, false, cmd_report_table, 0 };
static const struct question sites = { &rank_sites, CMD_REPORT_TABLE_TOP, false, cmd_report_table, 0 };

const struct command commands[] = {
	{
		.name = "run",
		.arguments = "[--] CMD...",
		.summary = "record CMD, then print why it ended and what held its memory",
		.details = "How CMD ended and the lines that held most go to stderr: stdout is CMD's own. The exit status is that of CMD, or 128 + n when\n"
				   "signal n ended it; 126 or 127 when it cannot be run; 2 when the arguments are wrong.\n",
		.options = TAKES(OUTPUT) | TAKES(DOMAIN) | TAKES(PROJECT) | TAKES(SAMPLE) | TAKES(PYTHON_OBJECTS) |
	               TAKES(SYSTEM_ALLOCATORS) | TAKES(GUARD) | TAKES(GUARD_ACTION) | TAKES(NO_HOLDERS) |
	               TAKES(HOLDERS_STOP) | TAKES(SNAPSHOTS) | TAKES(KERNEL) | TAKES(KEEP) | TAKES(QUIET) | TAKES(COLOR),
		.words = { [OPTION_KERNEL] = { NULL, "CMD is a notebook's kernel (kmemshim jupyter install writes this)" },
	               [OPTION_OUTPUT] = { "DIR", "folder for captures (default: KMEMSHIM_OUT, then ./kmemshim.out)" },
	               [OPTION_DOMAIN] = { "D", "show only lines of this domain: heap, mmap, cuda:0, "
	                                        "cuda (all devices)" } },
		.arguments_min = 1,
		.arguments_max = -1,
		.is_launcher = true,
		.run = cmd_run,
	},
	{
		.name = "report",
		.arguments = "[CAPTURE]",
		.summary = "one page: verdict, totals, peak, leaks, devices, losses",
		.details = CAPTURE_HELP,
		.options = OPTIONS_OF_TABLES | TAKES(HTML) | TAKES(NO_SOURCE) | TAKES(FORCE) | TAKES(ALL),
		.words = { [OPTION_ALL] = { NULL, "show also what recording itself did" },
	               [OPTION_FORCE] = { NULL, "also where there is such a file" },
	               [OPTION_TOP] = { "N", "show N lines of code in each table (default 5)" } },
		.arguments_max = 1,
		.question = &page,
		.run = cmd_report,
	},
	{
		.name = "why",
		.arguments = "[CAPTURE]",
		.summary = "why the program ended",
		.details = CAPTURE_HELP
		"The text says how sure it is: certain, likely, possible or unknown. With --domain it is about that domain: which\n"
		"line held it, whether it grows, which requests were refused.\n",
		.options = OPTIONS_OF_READERS | TAKES(JSON) | TAKES(DOMAIN) | TAKES(KERNEL),
		.words = { [OPTION_JSON] = { NULL,
	                                 "print the report as JSON, without lines and sites (see kmemshim schema)" } },
		.arguments_max = 1,
		.question = &why,
		.run = cmd_report,
	},
	{
		.name = "peak",
		.arguments = "[CAPTURE]",
		.summary = "which lines of code held the memory at the peak",
		.details = CAPTURE_HELP
		"A row is a line of code, the sum of its call sites; --json lists the call sites too. Memory left by imports\n"
		"comes after the rows, address space (reserved, file) last.\n",
		VIEW(peak, TAKES(SINCE)),
	},
	{
		.name = "leaks",
		.arguments = "[CAPTURE]",
		.summary = "which lines of code grow and do not release",
		.details = CAPTURE_HELP
		"Generations are birth dates of blocks, counted in allocated bytes or blocks. Classes:\n"
		"  leak       still holds blocks of nearly every generation since it first allocated\n"
		"  leak?      the same, but it may be a data set that was loaded once\n"
		"  swept      grew until the peak, then was released, and the program ended\n"
		"  too-short  too few generations to judge\n"
		"  backlog    releases late, in bursts, or less than it takes\n"
		"  filling    keeps its blocks, but adds fewer and fewer: a cache that fills\n"
		"  steady     holds memory, does not grow\n"
		"  import     left behind by importing a library\n"
		"  none       holds nothing\n",
		VIEW(leaks, 0),
	},
	{
		.name = "sites",
		.arguments = "[CAPTURE]",
		.summary = "what each line of code holds at the end, and all that it allocated",
		.details = CAPTURE_HELP
		"Rows are ordered by what they hold, whatever their class. Lines that hold nothing any more are there too.\n"
		"--json without --top lists every call site.\n",
		VIEW(sites, TAKES(SINCE)),
	},
	{
		.name = "top",
		.arguments = "[PID|CAPTURE]",
		.summary = "watch what a running program holds, line by line",
		.details = "PID is a process that is being recorded. " CAPTURE_HELP
				   "Shown are what is used of the limit, live bytes, growth since a minute ago and the rate of allocation, of one process or\n"
				   "of all processes of the session. Keys: up and down choose a line, Enter opens its source and stack, Esc goes back,\n"
				   "d the next domain, p the next process, n Python or native lines, o the order, s takes a snapshot, q ends.\n"
				   "The program is not slowed: its capture is read. When it ends, so does this, and says how it ended.\n",
		.options = TAKES(SYSROOT) | TAKES(PROJECT) | TAKES(WRAPPERS) | TAKES(DOMAIN) | TAKES(ONCE),
		.words = { [OPTION_DOMAIN] = { "D", "begin with this domain (default: the host's memory)" } },
		.arguments_max = 1,
		.run = cmd_top,
	},
	{
		.name = "diff",
		.arguments = "OLD [NEW]",
		.summary = "which lines hold more or less than in another run",
		.details = "OLD and NEW are each a .kmem file, a folder (its newest session), or one process of it: FOLDER@PID.\n"
				   "CAPTURE@NAME is what was live at this snapshot, CAPTURE@#7 at number 7, CAPTURE@end at the end. With OLD alone,\n"
				   "a folder, its newest session is compared with the one before. A line is known again when the lines above it\n"
				   "moved, when its function was renamed, in other folders, builds and versions of Python: see docs/diff.md.\n"
				   "Exit status: 0, whatever changed (`check` judges); 2 wrong options; 3 a capture that cannot be compared.\n",
		.options = OPTIONS_OF_READERS | TAKES(JSON) | TAKES(TOP) | TAKES(DOMAIN) | TAKES(BY) | TAKES(MARKDOWN),
		.words = { [OPTION_TOP] = { "N",
	                                "show N rows of each kind: changed, new, gone (default 10); of JSON, N rows in all" },
	               [OPTION_SALVAGE] = { NULL, "compare the intact parts of a damaged capture" } },
		.arguments_min = 1,
		.arguments_max = 2,
		.run = cmd_diff,
	},
	{
		.name = "tree",
		.arguments = "[CAPTURE]",
		.summary = "who called what that held the memory",
		.details = CAPTURE_HELP
		"Lines of libraries that only pass memory on are left out, and so are start-up, the import system, allocators,\n"
		"templates of the C++ library, and what holds less than 1 %.\n",
		.options = OPTIONS_OF_READERS | TAKES(VALUE) | TAKES(DOMAIN) | TAKES(NATIVE) | TAKES(BY) | TAKES(ALL),
		.words = { [OPTION_ALL] = { NULL, "show every caller, also what is left out otherwise" },
	               [OPTION_BY] = { NULL,
	                               "what callers are: a line (default), function, file, module, package; or the thread first" } },
		.arguments_max = 1,
		.choices = ROWS_TO_CHOOSE,
		.question = &tree,
		.run = cmd_report,
	},
	{
		.name = "waste",
		.arguments = "[CAPTURE]",
		.summary = "what was freed and kept, never touched, allocated again and again",
		.details = CAPTURE_HELP
		"Freed, and still in memory: what malloc keeps, and the lines whose few blocks keep it. Never touched: blocks that are\n"
		"live and not in memory. Again and again: lines that allocated at least four times what they held, with sizes.\n",
		.options = OPTIONS_OF_READERS | TAKES(DOMAIN) | TAKES(TOP),
		.words = { [OPTION_TOP] = { "N", "show N lines of each kind (default 5)" } },
		.arguments_max = 1,
		.question = &waste,
		.run = cmd_report,
	},
	{
		.name = "annotate",
		.arguments = "FILE|MODULE [CAPTURE]",
		.summary = "a source file, with what each line held beside it",
		.details = "FILE is a path or the end of one (train.py, models/net.py), MODULE a Python module (models.net); In[3] is a cell.\n" CAPTURE_HELP
				   "peak: held when memory was highest. live: at the end. allocated: in all. class: see kmemshim leaks --help.\n"
				   "through: held at the peak by what the line called. Long stretches without memory are left out.\n",
		.options = OPTIONS_OF_READERS | TAKES(DOMAIN) | TAKES(AT) | TAKES(ALL),
		.words = { [OPTION_ALL] = { NULL, "print every line of the file" } },
		.arguments_min = 1,
		.arguments_max = 2,
		.question = &annotate,
		.run = cmd_report,
	},
	{
		.name = "export",
		.arguments = "--format F [CAPTURE]",
		.summary = "write it in the format of another program",
		.details = CAPTURE_HELP
		"folded: stacks for flamegraph.pl, inferno, speedscope. speedscope: a profile for https://www.speedscope.app.\n"
		"pprof: for go tool pprof. dhat: for valgrind's dh_view.html. massif: for ms_print.\n"
		"ndjson: a JSON object for each line of code. openmetrics: totals and the largest lines, for Prometheus.\n"
		"html: the page that `report --html` writes.\n",
		.options = OPTIONS_OF_READERS | TAKES(FORMAT) | TAKES(VALUE) | TAKES(NO_SOURCE) | TAKES(DOMAIN) |
	               TAKES(OUTPUT) | TAKES(FORCE) | TAKES(NO_SOURCE),
		.words = { [OPTION_FORMAT] = { "F", "one of these (required)" },
	               [OPTION_NO_SOURCE] = { NULL, "html: leave the texts of source files out" },
	               [OPTION_OUTPUT] = { "FILE", "where to write (default: standard output)" },
	               [OPTION_FORCE] = { NULL, "also where there is such a file" } },
		.arguments_max = 1,
		.choices = { [OPTION_FORMAT] = "folded speedscope pprof dhat massif ndjson openmetrics html" },
		.run = cmd_export,
	},
	{
		.name = "baseline",
		.arguments = "-o FILE RUN...|-- CMD",
		.summary = "save what good runs held, for `check`",
		.details = "RUN is a .kmem file, or a folder: each session in it is a run. With -- CMD the program is run and recorded first,\n"
				   "5 times. From 3 runs on, `check` learns from them how much the figures vary. A run that was killed or failed is\n"
				   "refused (exit status 4). Of a folder FILE, there is one baseline for each platform in it.\n"
				   "A baseline made with --domain holds that domain alone, and `check` compares that domain alone.\n",
		.options = OPTIONS_OF_RUNS | TAKES(OUTPUT) | TAKES(FORCE) | TAKES(ROUNDS),
		.words = { [OPTION_FORCE] = { NULL, "also where FILE is there and is no baseline" },
	               [OPTION_OUTPUT] = { "FILE", "write the baseline to FILE, or into a folder (required)" },
	               [OPTION_ROUNDS] = { "N", "what {n} stands for in CMD (default 100)" },
	               [OPTION_RUNS] = { "N",
	                                 "use the newest N sessions of each folder (default: all); run CMD N times" } },
		.arguments_min = 1,
		.arguments_max = -1,
		.takes_program = true,
		.run = cmd_baseline,
	},
	{
		.name = "check",
		.arguments = "RUN...|-- CMD",
		.summary = "is a run worse than a baseline, or over its budget? (for CI)",
		.details = "RUN is a .kmem file, or a folder: its newest session is the run. Of several runs, the lowest live bytes and the\n"
				   "median peak count. With -- CMD the program is run and recorded first; what fails is tried again with more runs.\n"
				   "FILE of --baseline may be a folder with one for each platform, or BRANCH:FILE. Budgets and suppressions are read\n"
				   "from .kmemshim.yml: --init writes one. With --domain only that domain and its lines are compared.\n"
				   "Exit status: 0 not worse, 1 worse, 2 wrong options, configuration or baseline, 3 unusable capture, 4 the program\n"
				   "was killed or failed, 77 nothing was judged, where the configuration says so.\n",
		.options = OPTIONS_OF_RUNS | TAKES(BASELINE) | TAKES(ABSOLUTE) | TAKES(RELATIVE) | TAKES(FORMAT) |
	               TAKES(CONFIG) | TAKES(INIT) | TAKES(FORCE) | TAKES(OUTPUT) | TAKES(STATUS_FOR) | TAKES(PLATFORM) |
	               TAKES(RETRIES) | TAKES(ROUNDS),
		.words = { [OPTION_RUNS] = { "N",
	                                 "use the newest N sessions of each folder, or all; run CMD N times (default 1)" },
	               [OPTION_OUTPUT] = { "DIR",
	                                   "with -- CMD: folder for captures (default: KMEMSHIM_OUT, then ./kmemshim.out)" },
	               [OPTION_FORCE] = { NULL, "with --init: also where there is such a file" } },
		.arguments_min = 1,
		.arguments_max = -1,
		.takes_program = true,
		.choices = { [OPTION_FORMAT] = "text junit markdown github github-summary gitlab sarif" },
		.run = cmd_check,
	},
	{
		.name = "jupyter",
		.arguments = "install|list|uninstall",
		.summary = "record a notebook's kernel",
		.details = "install: makes a kernel that starts KERNEL recorded, with a guard of 92% that interrupts the cell. Choose it in the\n"
				   "notebook. When it dies, the next cell says why. list: shows such kernels. uninstall: removes one, or --all.\n",
		.words = { [OPTION_ALL] = { NULL, "uninstall: remove all kernels that kmemshim made" } },
		.options = TAKES(ALL) | TAKES(WRAP) | TAKES(NAME) | TAKES(USER) | TAKES(SYS_PREFIX) | TAKES(PREFIX) |
	               TAKES(FORCE) | TAKES(GUARD) | TAKES(GUARD_ACTION) | TAKES(NO_GUARD) | TAKES(KEEP),
		.arguments_min = 1,
		.arguments_max = 1,
		.run = cmd_jupyter,
	},
	{
		.name = "mark",
		.arguments = "PID NAME",
		.summary = "give this moment of a recorded program a name",
		.details = "The report lists it with the steps, time and memory of that moment. The program is not stopped: it makes the mark when\n"
				   "it allocates next. Programs make their own with kmemshim.h, or kmemshim.mark() of the Python package.\n",
		.arguments_min = 2,
		.arguments_max = 2,
		.run = cmd_mark,
	},
	{
		.name = "snapshot",
		.arguments = "PID [NAME]",
		.summary = "keep what each line of a recorded program holds now",
		.details = "The same as mark, with what each line holds. The capture keeps the latest 30 of them. Reading a running program needs\n"
				   "none: each command reads its capture as it is now.\n",
		.arguments_min = 1,
		.arguments_max = 2,
		.run = cmd_mark,
	},
	{
		.name = "clean",
		.arguments = "[DIR...]",
		.summary = "what recordings left on this machine, and how old it is",
		.details = "Of each DIR; without one, of ./kmemshim.out and of notebook kernels. Captures that programs still write are left alone.\n"
				   "Of DIR only captures are removed.\n",
		.options = TAKES(REMOVE),
		.arguments_max = -1,
		.run = cmd_clean,
	},
	{
		.name = "holders",
		.arguments = "PID|CAPTURE",
		.summary = "what keeps the blocks of the largest lines of a recorded program alive",
		.details = "Stops the program, reads its memory from outside, and lets it go on. Of each of the lines that hold most, up to 32 blocks\n"
				   "are drawn. It prints what holds them: names of Python, and variables of C and C++. Needs the right to trace\n"
				   "the program (ptrace). Of a CAPTURE: what the launcher found, when a line was a leak or the guard was passed; with --core\n"
				   "what a core file of the same process has.\n",
		.options = TAKES(CORE) | TAKES(JSON) | TAKES(TOP) | TAKES(STOP) | TAKES(PROJECT) | TAKES(WRAPPERS) |
	               TAKES(SYSROOT),
		.words = { [OPTION_JSON] = { NULL, "print JSON (see kmemshim schema holders)" },
	               [OPTION_TOP] = { "N", "show N lines, at most 10 (default 10)" } },
		.arguments_min = 1,
		.arguments_max = 1,
		.run = cmd_holders,
	},
	{
		.name = "lost",
		.arguments = "PID | --at-exit -- CMD...",
		.summary = "blocks of a recorded program that no pointer leads to any more",
		.details = "Stops the program, reads its memory from outside, and lets it go on. Bytes are lost directly when no pointer to their block is\n"
				   "left anywhere, and lost indirectly when only lost blocks lead there. Needs the right to trace the program (ptrace).\n"
				   "With --at-exit it runs CMD, recorded, and looks when CMD is about to end. What CMD writes to stdout goes to stderr then,\n"
				   "and the exit status is that of CMD, or 128 + n when signal n ended it.\n",
		.takes_program = true,
		.options = TAKES(AT_EXIT) | TAKES(OUTPUT) | TAKES(JSON) | TAKES(TOP) | TAKES(STOP) | TAKES(PROJECT) |
	               TAKES(WRAPPERS) | TAKES(SYSROOT),
		.words = { [OPTION_JSON] = { NULL, "print JSON (see kmemshim schema lost)" },
	               [OPTION_OUTPUT] = { "DIR",
	                                   "with --at-exit: folder for captures (default: KMEMSHIM_OUT, then ./kmemshim.out)" } },
		.arguments_max = 1,
		.run = cmd_lost,
	},
	{
		.name = "doctor",
		.arguments = "[--] [CMD...]",
		.summary = "check whether CMD can be recorded",
		.details = "Examines the library, the folder for captures, limits, the environment, CMD and its libraries. CMD is not run;\n"
				   "if it is a Python, that interpreter is started without a program. Exit status: 0 no problem, 1 a problem.\n",
		.options = TAKES(OUTPUT) | TAKES(JSON),
		.words = { [OPTION_OUTPUT] = { "DIR",
	                                   "folder for captures to examine (default: KMEMSHIM_OUT, then ./kmemshim.out)" },
	               [OPTION_JSON] = { NULL, "print the findings as JSON" } },
		.arguments_max = -1,
		.is_launcher = true,
		.run = cmd_doctor,
	},
	{
		.name = "schema",
		.arguments = "[report|diff|doctor|holders|lost]",
		.summary = "print the JSON schema of what --json prints",
		.details = "report (the default): of report, why, peak, leaks and sites. diff: of diff. doctor: of doctor. holders, lost: of these.\n",
		.arguments_max = 1,
		.run = cmd_schema,
	},
	{
		.name = "completion",
		.arguments = "bash|zsh|fish",
		.summary = "print what completes these commands in bash, zsh or fish",
		.details = "In bash: source <(kmemshim completion bash). `make install` puts all three where the shells look.\n",
		.arguments_min = 1,
		.arguments_max = 1,
		.run = cmd_completion,
	},
	{
		.name = "manual",
		.arguments = "",
		.summary = "print the manual page: kmemshim manual | man -l -",
		.details = "All commands and their options, as `kmemshim COMMAND --help` prints them.\n",
		.run = cmd_manual,
	},
	{ .name = NULL },
};

/* By one letter more, one less or another one, or by two that changed places. */
static bool
is_misspelt(const char *text, const char *name)
{
	while (*text != '\0' && *text == *name) {
		text++;
		name++;
	}
	if (*text == '\0' || *name == '\0')
		return strlen(text) + strlen(name) == 1;
	return strcmp(text, name + 1) == 0 || strcmp(text + 1, name) == 0 || strcmp(text + 1, name + 1) == 0 ||
	       (text[0] == name[1] && text[1] == name[0] && strcmp(text + 2, name + 2) == 0);
}

const struct command *
command_like(const char *text)
{
	const struct command *command = commands;

	while (command->name != NULL && !is_misspelt(text, command->name))
		command++;
	return command->name != NULL ? command : NULL;
}

const struct command *
command_find(const char *name)
{
	for (const struct command *command = commands; command->name != NULL; command++) {
		if (strcmp(name, command->name) == 0)
			return command;
	}
	return NULL;
}
