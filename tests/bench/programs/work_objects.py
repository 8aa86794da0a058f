"""Pure Python: objects, dictionaries, lists and text, made and dropped.   work_objects.py ROUNDS"""
import sys

import steady


class Node:
    def __init__(self, key, children):
        self.key = key
        self.children = children
        self.label = f"node {key}"


def tree(depth, key):
    return Node(key, [] if depth == 0 else [tree(depth - 1, key * 3 + branch) for branch in range(3)])


def leaves(node):
    return [node.label] if not node.children else [label for child in node.children for label in leaves(child)]


def step():
    counts = {}
    for label in leaves(tree(6, 1)):
        for word in label.split():
            counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]


steady.measure(step, int(sys.argv[1]))
