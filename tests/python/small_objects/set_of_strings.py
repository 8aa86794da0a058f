"""Addresses that were visited."""
visited = set()


def visit(number):
    visited.add("https://example.org/articles/%d/comments?page=%d&sorted=by-date&language=en" % (number, number % 7))  # culprit


number = 0
while True:
    visit(number)
    number += 1
