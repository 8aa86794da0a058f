/* config_template.c - the file that `check --init` writes: all that can be said, most of it as a comment. */
#include "gate/config.h"

static const char text
	[] = "# What `kmemshim check` allows. It reads this file where it runs; --config FILE reads another one.\n"
		 "#\n"
		 "# A size has its unit: 512 KiB, 10 MiB, 2 GiB. With a plus it is beyond the baseline: +10 MiB, +5 %.\n"
		 "# What has a budget is judged by it alone. All else is compared with the baseline.\n"
		 "\n"
		 "budgets:\n"
		 "  # All memory of the host. Its peak is the sum of the domains' peaks.\n"
		 "  #total:\n"
		 "  #  peak: 500 MiB\n"
		 "  #  live: +1 MiB        # at the end\n"
		 "  #  per_step: 1 KiB     # kept in each step by lines that grow; kmemshim.step(), or rounds of a loop\n"
		 "\n"
		 "  # Domains as `kmemshim report` names them; \"cuda\" is all devices.\n"
		 "  #domains:\n"
		 "  #  heap:\n"
		 "  #    peak: +10 %\n"
		 "  #  cuda:0:\n"
		 "  #    peak: 6 GiB\n"
		 "\n"
		 "  # Lines, by a part of \"train.py:41 epoch\" or of the file's path. * stands for any characters, ^ and $ for begin and end.\n"
		 "  #lines:\n"
		 "  #  \"src/cache.py:\":\n"
		 "  #    live: 64 MiB\n"
		 "\n"
		 "# Leaks that are known. `leak` fits a function, file or module of any frame, as in suppressions of LeakSanitizer.\n"
		 "suppressions:\n"
		 "  #- leak: libfoo.so\n"
		 "  #  reason: known to them, fixed in 2.3\n"
		 "  #  expires: 2030-12-31\n"
		 "\n"
		 "# Files of LeakSanitizer's suppressions.\n"
		 "suppression_files: []\n"
		 "\n"
		 "run:\n"
		 "  min_steps: 6           # fewer say nothing of what is kept in each step\n"
		 "  too_short: fail        # a run with fewer: fail (status 3), skip (status 77) or pass\n"
		 "  unmatched: pass        # a budget whose pattern fits no line: pass (with a note), fail (status 2) or skip (status 77)\n"
		 "  retries: 3             # `check -- CMD`: how often a failed check is repeated, with more runs, before it fails\n"
		 "\n"
		 "# Growth up to this is not a change. Without these lines it is taken from the baseline's runs, where there are three or more.\n"
		 "#tolerance:\n"
		 "#  absolute: 1 MiB\n"
		 "#  relative: 5 %\n";

void
config_template(FILE *stream)
{
	(void)fputs(text, stream);
}
