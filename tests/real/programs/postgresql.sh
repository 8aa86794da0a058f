# packages: postgresql postgresql-contrib
# version: psql --version | cut -d ' ' -f 3
# A cluster of its own, pgbench's PGBENCH_TRANSACTIONS by each of 4 clients (20,000, a minute or so), parallel queries, a backup; then what the tables hold.
bin=$(pg_config --bindir)
as() { if [ $(id -u) = 0 ]; then setpriv --reuid postgres --regid postgres --init-groups "$@"; else "$@"; fi; }
[ $(id -u) != 0 ] || chown postgres .
as $bin/initdb -D data -A trust --no-sync >initdb.log
as $bin/pg_ctl -D data -w -l server.log -o "-k $PWD -c listen_addresses= -c fsync=off -c max_parallel_workers_per_gather=2" start >/dev/null
export PGHOST=$PWD PGDATABASE=postgres PGUSER=$([ $(id -u) = 0 ] && echo postgres || id -un)
$bin/pgbench -i -q -s 2 >/dev/null 2>&1
$bin/pgbench -c 4 -j 2 -t ${PGBENCH_TRANSACTIONS:-20000} >pgbench.log 2>&1; echo "pgbench $?"
$bin/pgbench -C -c 2 -t 50 >pgbench.log 2>&1; echo "pgbench with connections $?"
psql -At <<-'SQL'
	SELECT count(*) FROM pgbench_accounts;
	SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history);
	CREATE TABLE t AS SELECT i, md5(i::text) AS m, jsonb_build_object('a', i, 'b', array_fill(i, ARRAY[5])) AS j FROM generate_series(1, 200000) i;
	CREATE INDEX ON t (m); ANALYZE t;
	SELECT count(*), max(m), sum((j->>'a')::int) FROM t;
	SELECT substr(m, 1, 1) AS p, count(*) FROM t GROUP BY p ORDER BY p LIMIT 3;
	DO $$ BEGIN FOR i IN 1..200 LOOP BEGIN RAISE EXCEPTION 'x %', i; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$;
SQL
$bin/pg_dump -t t | sed 's/^\\\(un\)\?restrict.*//' | sha256sum
as $bin/pg_ctl -D data -w stop -m fast >/dev/null; echo "stop $?"
