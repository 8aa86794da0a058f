#!/bin/sh
# torchrun: every worker is a process of one session, and has a capture of its own.
#   sh torchrun.sh 4 train.py --epochs 3
# After a death: kmemshim why kmemshim.torchrun (the verdict names the worker that was killed)
set -eu
workers=$1
shift
exec kmemshim run -o kmemshim.torchrun -- torchrun --nproc-per-node="$workers" "$@"
