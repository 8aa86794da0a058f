"""Names by number: strings in a dictionary."""
names = {}


def name(number):
    return "customer number %09d of the northern region, by post, since the spring of 1998" % number  # culprit


number = 0
while True:
    names[number] = name(number)
    number += 1
