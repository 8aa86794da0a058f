"""held  local `service` of main() (local_of_main.py:27) -> Service .cache -> Cache .entries -> collections.OrderedDict of 300 [*] -> bytearray

All hangs on a local variable of a function that runs.
"""
import collections
import sys


class Cache:
    def __init__(self):
        self.entries = collections.OrderedDict()

    def get(self, key):
        if key not in self.entries:
            self.entries[key] = bytearray(20000)
        return self.entries[key]


class Service:
    def __init__(self):
        self.cache = Cache()

    def serve(self, request):
        return len(self.cache.get(request))


def main():
    service = Service()
    for i in range(300):
        service.serve(("GET", "/page/%d" % i))
    print("ready", flush=True)
    sys.stdin.readline()
    return service


main()
