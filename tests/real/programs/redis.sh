# packages: redis-server redis-tools
# version: redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/'
# On a socket of its own; it saves by fork, twice.
redis-server --port 0 --unixsocket socket --dir $PWD --save '' --appendonly no --daemonize no --enable-debug-command yes >server.log &
server=$!
ask() { redis-cli -s socket "$@"; }
for i in $(seq 100); do [ "$(ask ping 2>&1)" != PONG ] || break; sleep 0.1; done
redis-benchmark -s socket -n 60000 -P 16 -r 20000 -d 200 -t set,get,lpush,rpop,sadd,hset,zadd -q >bench.log
ask flushall
for i in $(seq 1000); do echo "set key$i value$i"; echo "rpush list $i"; echo "hset hash f$i $i"; done | ask --pipe | tail -1
ask bgsave
for i in $(seq 100); do ask info persistence | grep -q rdb_bgsave_in_progress:1 || break; sleep 0.1; done
ask save
ask dbsize; ask llen list; ask hget hash f77; ask debug digest
ask shutdown nosave
wait $server; echo "server $?"
