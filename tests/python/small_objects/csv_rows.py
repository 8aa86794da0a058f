"""A table read whole."""
import csv

TEXT = ["%d,first name %d,last name %d,street %d,town %d" % (n, n, n, n, n) for n in range(1000)]
table = []


def read():
    return list(csv.reader(TEXT))  # culprit


while True:
    table.append(read())
