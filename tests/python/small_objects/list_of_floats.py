"""Numbers of a series, each of them an object."""
series = []
value = 0.0
while True:
    value += 0.125
    series.extend([value * step for step in range(1, 1001)])  # culprit
