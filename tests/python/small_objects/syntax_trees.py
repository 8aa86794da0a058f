"""Parsed programs."""
import ast

TEXT = "".join(f"def f{n}(a, b=2):\n    return [a * b + {n}, {{'key': a}}]\n" for n in range(100))
programs = []


def parse():
    return ast.parse(TEXT)  # culprit


while True:
    programs.append(parse())
