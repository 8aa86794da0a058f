# packages: sqlite3
# version: sqlite3 --version | cut -c -7
sqlite3 file.db <<-'SQL'
	PRAGMA journal_mode = WAL;
	CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c REAL);
	WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
		INSERT INTO t SELECT i, printf('row %d of %d', i, i * 31 % 1009), i / 7.0 FROM n;
	CREATE INDEX tb ON t (b);
	SELECT count(*), sum(length(b)), round(sum(c), 2) FROM t;
	SELECT substr(b, 1, 5) AS p, count(*), group_concat(a % 7, '') FROM t WHERE a < 3000 GROUP BY p ORDER BY p LIMIT 5;
	SELECT count(*) FROM t x JOIN t y ON x.b = y.b WHERE x.a < 50000;
	DELETE FROM t WHERE a % 3 = 0; VACUUM; PRAGMA integrity_check;
	SELECT count(*) FROM t;
SQL
sha256sum file.db
