# packages: python3
# needs: /usr/bin/python3 -c 'import test.test_gc'
# version: /usr/bin/python3 -V | cut -d ' ' -f 2
# CPython's own tests: outcome of each, module by module.
for module in builtin bytes capi class codecs collections compile contextlib copy coroutines csv ctypes.test.test_callbacks dataclasses \
	decimal deque descr dict enum exceptions faulthandler fileio fork1 fractions functools gc generators grammar hashlib heapq io \
	iter itertools list long lzma memoryio mmap multiprocessing_fork multiprocessing_spawn os pickle posix pty queue random re resource \
	runpy select set shutil signal sqlite3 struct subprocess sys tempfile thread threading threadsignals time tracemalloc types typing \
	unicode weakref xml_etree xml_etree_c zipfile zlib; do
	case $module in ctypes.*) name=$module ;; *) name=test.test_$module ;; esac
	status=0
	timeout 300 /usr/bin/python3 "$ROOT/tests/preload/cpython_outcomes.py" $name >outcomes 2>/dev/null </dev/null || status=$?
	echo "$module $status"
	tail -n 1 outcomes | /usr/bin/env -u LD_PRELOAD /usr/bin/python3 -c '
import json, sys
for test, outcome in sorted(json.loads(sys.stdin.read() or "{}").items()): print(test, outcome.split()[0])'
done
