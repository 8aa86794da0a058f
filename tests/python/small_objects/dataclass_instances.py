"""Rows as data classes."""
from dataclasses import dataclass

rows = []


@dataclass
class Row:
    number: int
    name: str
    price: float


def read(number):
    return Row(number, "bolt", 0.5)  # culprit


while True:
    rows.append(read(len(rows)))
