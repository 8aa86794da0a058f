"""Programs that grow until something stops them: for the guard's tests."""

# Twenty ways to grow. Each is a cell: it never ends, and appends to the list `kept`; some make `Item`s.
GROWING = {
    "small objects": "while True: kept.append([object() for _ in range(1000)])",
    "lists of integers": "while True: kept.append(list(range(10**6, 10**6 + 1000)))",
    "strings": "while True: kept.append(str(len(kept)) * 50)",
    "a dictionary": "while True: kept.append({i: str(i) for i in range(500)})",
    "tuples": "while True: kept.append(tuple(kept[-100:]))",
    "instances": "while True: kept.append(Item())",
    "sets": "while True: kept.append({object() for _ in range(200)})",
    "one list": "kept.append([])\nwhile True: kept[0].append(None)",
    "dictionaries": "while True: kept.append(dict.fromkeys(range(20000)))",
    "copies of a list": "while True: kept.append(kept[:200] + [None] * 300)",
    "one bytearray": "kept.append(bytearray())\nwhile True: kept[0] += bytes(65536)",
    "blocks of 4 KiB": "while True: kept.append(bytearray(b'x') * 4096)",
    "blocks of 64 KiB": "while True: kept.append(bytearray(b'x') * 65536)",
    "blocks of 1 MiB": "while True: kept.append(bytearray(b'x') * (1 << 20))",
    "blocks of 8 MiB": "while True: kept.append(bytearray(b'x') * (8 << 20))",
    "untouched blocks, touched later": """while True:
    block = bytearray(8 << 20)
    kept.append(block)
    for at in range(0, len(block), 4096): block[at] = 1""",
    "mappings": """import mmap
while True:
    kept.append(mmap.mmap(-1, 2 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    for at in range(0, 2 << 20, 4096): kept[-1][at] = 1""",
    "recursion": "def deeper(held, depth):\n    kept.append(held)\n    return depth and deeper([held] * 2000, depth - 1)\nwhile True: deeper([], 50)",
    "a generator": "while True: kept.extend(bytes(900) for _ in range(1000))",
    "a thread": """import threading
stop = threading.Event()
def grow():
    while not stop.is_set(): kept.append(bytearray(b'x') * 10000)
worker = threading.Thread(target=grow)
worker.start()
try:
    while True: worker.join(0.5)
finally:
    stop.set()""",
}
