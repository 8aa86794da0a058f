"""Moves objects about until words of them are left over everywhere; then asks the collector who refers to each, and says so as JSON.

Words: scenario, seed. Each line of MAKERS ends in containers that are its own, and was in many others before.
"""
import collections
import functools
import gc
import json
import random
import sys

MAKERS = [
    lambda: bytearray(9000),
    lambda: bytearray(9001),
    lambda: bytearray(9002),
    lambda: bytearray(9003),
    lambda: bytearray(9004),
    lambda: bytearray(9005),
]
COUNT = 150
ids = {}  # of each object its maker, a number


class Node:
    def __init__(self, payload):
        self.payload = payload


class Slots:
    __slots__ = ("first", "second")

    def __init__(self, first, second):
        self.first, self.second = first, second


kept_list, kept_dict, kept_deque, kept_nodes, kept_slots, kept_closures = [], {}, collections.deque(), [], {}, []


def closure_of(value):
    return lambda: value


def keep(kind, value):
    if kind == 0:
        kept_list.append(value)
    elif kind == 1:
        kept_dict[len(kept_dict)] = value
    elif kind == 2:
        kept_deque.append(value)
    elif kind == 3:
        kept_nodes.append(Node(value))
    elif kind == 4:
        kept_slots[len(kept_slots)] = Slots(None, value)
    else:
        kept_closures.append(closure_of(value))


def make(kind):
    for _ in range(rng.randrange(3)):  # where it lies was another's before
        MAKERS[kind]()
    value = MAKERS[kind]()
    ids[id(value)] = kind
    return value


stack, line, table, seen, ordered = [], collections.deque(), {}, [], collections.OrderedDict()
scratch = Node(None)


def moved():
    for kind in range(len(MAKERS)):
        for _ in range(COUNT):
            stack.append(make(kind))
    rng.shuffle(stack)
    line.extend(stack)
    for number in range(len(stack)):
        value = stack.pop()
        table[number] = value
        line.pop()
        keep(ids[id(value)], table.pop(number))


def queues():
    waiting = [(kind, None) for kind in range(len(MAKERS)) for _ in range(COUNT)]
    rng.shuffle(waiting)
    for number, (kind, _) in enumerate(waiting):
        line.append(make(kind))
        line.appendleft(make(kind))
        ids.pop(id(line[0]))
        line.popleft()
        line.rotate(rng.randrange(5))
        if len(line) > 100:
            value = line.popleft() if number % 2 else line.pop()
            keep(ids[id(value)], value)
    while line:
        value = line.pop()
        keep(ids[id(value)], value)


def caches():
    @functools.lru_cache(maxsize=40)
    def cached(number, kind):
        return make(kind)

    order = [kind for kind in range(len(MAKERS)) for _ in range(COUNT)]
    rng.shuffle(order)
    for number, kind in enumerate(order):
        value = cached(number, kind)
        ordered[number] = value
        table[number % 50] = value
        if len(ordered) > 60:
            ordered.popitem(last=False)
        keep(kind, value)
    cached.cache_clear()
    ordered.clear()
    table.clear()


def frames():
    def deep(value, depth):
        copy, other = value, [value]
        if depth:
            return deep(value, depth - 1)
        raise ValueError(value, other, copy)

    def rows(value):
        inside = value
        yield inside
        yield None

    order = [kind for kind in range(len(MAKERS)) for _ in range(COUNT)]
    rng.shuffle(order)
    for kind in order:
        value = make(kind)
        try:
            deep(value, rng.randrange(30))
        except ValueError as error:
            seen.append(error)
        generator = rows(value)
        next(generator)
        seen.append(generator)
        keep(kind, value)
        if len(seen) > 20:
            del seen[rng.randrange(len(seen))]
    seen.clear()


def instances():
    order = [kind for kind in range(len(MAKERS)) for _ in range(COUNT)]
    rng.shuffle(order)
    nodes = [Node(None) for _ in range(50)]
    for kind in order:
        value = make(kind)
        node = rng.choice(nodes)
        node.payload = value
        setattr(node, "at%d" % rng.randrange(40), value)
        stack.append(value)
        seen[:0] = [value, (value,), {value.__len__()}]
        del seen[rng.randrange(len(seen)):]
        if len(stack) > 30:
            del stack[rng.randrange(10):]
        keep(kind, value)
    stack.clear()
    seen.clear()


def referrers():
    """{id: pairs of the global that leads there, and the type of what refers to it}: as gc.get_referrers, and with what the collector leaves out."""
    found = {}
    for name in [name for name in globals() if name != "ids"]:
        known, new = set(), [globals()[name]]
        for _ in range(7):
            following = []
            for item in new:
                if id(item) in known or isinstance(item, type(sys)) or item is globals():
                    continue
                known.add(id(item))
                following.extend(gc.get_referents(item))
                for other in gc.get_referents(item):
                    if id(other) in ids and type(other) is bytearray:
                        found.setdefault(id(other), set()).add((name, type(item).__name__))
            new = following
    return found


rng = random.Random(int(sys.argv[2]))
globals()[sys.argv[1]]()
gc.collect()
said = {}
for number, pairs in referrers().items():
    said.setdefault(MAKERS[ids[number]].__code__.co_firstlineno, set()).update(pairs)
with open(sys.argv[3], "w") as out:
    json.dump({line: sorted(pairs) for line, pairs in said.items()}, out)
print("ready", flush=True)
sys.stdin.readline()
