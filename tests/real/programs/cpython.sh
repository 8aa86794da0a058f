# packages: python3
# needs: /usr/bin/python3 -c 'import test.test_gc'
# version: /usr/bin/python3 -V | cut -d ' ' -f 2
# CPython's own tests: outcome of each, module by module.
modules="builtin bytes class codecs collections contextlib copy coroutines csv ctypes.test.test_callbacks dataclasses deque descr \
	dict enum exceptions faulthandler fileio fork1 gc generators grammar heapq io iter itertools list memoryio mmap os posix \
	pty queue re resource runpy select set signal sqlite3 struct sys tempfile thread threading threadsignals traceback types typing unicode \
	weakref xml_etree_c zlib"
for module in ${CPYTHON_MODULES:-$modules}; do
	case $module in ctypes.*) name=$module ;; *) name=test.test_$module ;; esac
	status=0
	timeout 300 /usr/bin/python3 "$ROOT/tests/preload/cpython_outcomes.py" $name >outcomes 2>/dev/null </dev/null || status=$?
	echo "$module $status"
	tail -n 1 outcomes | /usr/bin/env -u LD_PRELOAD /usr/bin/python3 -c '
import json, sys
for test, outcome in sorted(json.loads(sys.stdin.read() or "{}").items()): print(test, outcome.split()[0])'
done
