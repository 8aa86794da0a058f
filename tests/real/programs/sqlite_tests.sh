# packages: gcc make tcl8.6-dev zlib1g-dev
# source: sqlite3
# build: ac_cv_func_malloc_usable_size=no ./configure -q --with-tcl=/usr/lib/tcl8.6 CFLAGS='-O1 -g' && make -s testfixture
# version: cat $SOURCE/VERSION
# SQLite's own tests: how many of each file fail, and which. Those of malloc let each request fail in turn; how many there are would depend on
# what malloc_usable_size() says of each block, and that on all that the process allocated before.
for pattern in 'alterfault' 'backup' 'fkey?' 'fts4content' 'index?' 'insert*' 'ioerr' 'join*' 'json*' 'lock*' 'malloc3' 'memsubsys1' 'mmap1' 'pager1' \
	'rowvalue*' 'schema*' 'select*' 'shared?' 'subquery*' 'thread001' 'trigger?' 'vacuum' 'view*' 'vtab_err' 'vtab?' 'wal' 'where?' 'wherefault' \
	'window?' 'with?' 'zeroblob*'; do
	for file in $SOURCE/test/$pattern.test; do
		name=$(basename $file .test)
		status=0
		timeout 300 $SOURCE/testfixture $file >log 2>&1 </dev/null || status=$?
		echo "$name $status $(grep -a -o '^[0-9]* errors out of [0-9]* tests' log)"
		grep -a '^! ' log || true
	done
done
