"""Messages that were unpickled."""
import pickle

MESSAGE = pickle.dumps([("key %d" % n, float(n), [n + 1000]) for n in range(200)])
messages = []


def receive():
    return pickle.loads(MESSAGE)  # culprit


while True:
    messages.append(receive())
