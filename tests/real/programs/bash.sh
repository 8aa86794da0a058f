# packages: bash coreutils
# version: bash --version | sed -n '1s/.*version \([^ ]*\).*/\1/p'
# Many short processes, pipes, process substitution, signals.
for i in $(seq 150); do echo $i | sed 's/1/x/' | tr 0-9 a-j; done | sort | sha256sum
diff <(seq 1000 | sort -R --random-source=/etc/passwd | sort -n) <(seq 1000) && echo same
(trap 'echo trapped' TERM; kill -TERM $BASHPID; echo after) && seq 300000 | sort -r --parallel=2 -S 2M | tail -1 | xargs -n 1 echo
