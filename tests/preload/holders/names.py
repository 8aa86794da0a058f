"""Three large blocks, and the keys of a dictionary are names of people.

With KMEMSHIM_PRIVATE=1 keys are not told.
"""
import sys

accounts = {}


def enter(name):
    accounts[name] = bytearray(1000000)


for person in ("alice", "bob", "carol"):
    enter(person)
print("ready", flush=True)
sys.stdin.readline()
