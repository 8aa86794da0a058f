"""Names by number: strings in a dictionary."""
names = {}


def name(number):
    return "customer number %09d of the northern region" % number  # culprit


number = 0
while True:
    names[number] = name(number)
    number += 1
