"""held  global `topics` of module __main__ -> dict of 10 [*] -> list of 3,000 [*] -> bytearray
There are few topics, and their number does not grow."""
import sys

topics = {f"topic {number}": [] for number in range(10)}
for number in range(30000):
    topics[f"topic {number % 10}"].append(bytearray(600))
print("ready", flush=True)
sys.stdin.readline()
