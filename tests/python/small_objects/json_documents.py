"""Answers of a server, parsed and kept."""
import json

TEXT = json.dumps([{"id": 1000 + n, "name": f"name-{n}", "tags": ["a%d" % n, "b%d" % n], "price": n + 0.5} for n in range(200)])
answers = []


def fetch():
    return json.loads(TEXT)  # culprit


while True:
    answers.append(fetch())
