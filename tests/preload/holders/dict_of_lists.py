"""held  local `runner` of main() (dict_of_lists.py:15) -> Runner .out -> dict of 600 [*] -> list of 2,000 [*] -> float
The dictionary grows; each list has a fixed size."""
import sys


class Runner:
    def __init__(self):
        self.out = {}


def values(number):
    return [number * 2000.5 + k for k in range(2000)]


def main():
    runner = Runner()
    for number in range(600):
        runner.out[number] = values(number)
    print("ready", flush=True)
    sys.stdin.readline()


main()
