# needs: pandas
"""A column of Python strings."""
import pandas

frames = []


def frame():
    return pandas.DataFrame({"name": pandas.Series(["name %d" % n for n in range(1000)], dtype=object)})  # culprit


while True:
    frames.append(frame())
