"""Errors with their tracebacks and frames."""
errors = []


def fail(number):
    text = "value %d is too large for the field that it was meant for" % number
    raise ValueError(text)  # culprit


number = 0
while True:
    try:
        fail(number)
    except ValueError as error:
        errors.append(error)
    number += 1
