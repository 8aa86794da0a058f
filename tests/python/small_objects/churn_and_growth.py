"""Most objects are dropped at once; a few stay."""
kept = []


def handle(number):
    parts = ["part %d of %d" % (part, number) for part in range(20)]
    total = sum(map(len, parts))
    return "answer %d: %d characters in all of the parts" % (number, total)  # culprit


while True:
    kept.append(handle(len(kept)))
