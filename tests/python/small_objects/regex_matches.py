"""Matches, each with its text."""
import re

PATTERN = re.compile(r"(\w+)=(\d+) (\w+)=(\d+)")
TEXT = "left=10 right=20"
found = []


def match():
    return PATTERN.match(TEXT)  # culprit


while True:
    found.append(match())
