"""Times of events."""
import datetime

times = []
START = datetime.datetime(2020, 1, 1)
STEP = datetime.timedelta(seconds=1)


def time():
    return START + STEP  # culprit


while True:
    times.append(time())
