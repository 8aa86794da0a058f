"""held  local `core` of main() (iterator_passes.py:29) -> Core .shelf -> Shelf .store -> Store .pages -> dict of 2,000 [*] -> bytearray
What runs over the pages holds them, too, and is nearer."""
import sys


class Store:
    def __init__(self):
        self.pages = {n: bytearray(2000) for n in range(2000)}


class Shelf:
    def __init__(self):
        self.store = Store()


class Core:
    def __init__(self):
        self.shelf = Shelf()


def wait(pages):
    running = iter(pages.values())
    del pages
    next(running)
    print("ready", flush=True)
    sys.stdin.readline()


def main():
    core = Core()
    wait(core.shelf.store.pages)


main()
