"""Words of a text."""
TEXT = "it was the best of times, it was the worst of times, it was the age of wisdom " * 50
texts = []


def words():
    return TEXT.split()  # culprit


while True:
    texts.append(words())
