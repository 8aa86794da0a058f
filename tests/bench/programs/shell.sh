#!/bin/sh
# A shell that starts small programs one after the other: every one of them is a process to record.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	/bin/ls / >/dev/null
done
