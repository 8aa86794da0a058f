"""A deep copy for each request."""
import copy

CONFIGURATION = {f"section {n}": {"path": ["a", "b"], "limits": [n, n + 1]} for n in range(20)}
requests = []


def request():
    return copy.deepcopy(CONFIGURATION)  # culprit


while True:
    requests.append(request())
