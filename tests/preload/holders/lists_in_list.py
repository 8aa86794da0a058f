"""held  global `recent` of module __main__ -> Recent .records -> list of 100 [*] -> Record .fields -> list of 60,000: its storage
The outer list grows; each of the inner ones has a fixed size and more items."""
import sys


class Record:
    def __init__(self):
        self.fields = [None] * 60000


class Recent:
    def __init__(self):
        self.records = []


recent = Recent()
for _ in range(100):
    recent.records.append(Record())
print("ready", flush=True)
sys.stdin.readline()
