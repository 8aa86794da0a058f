import pandas as pd

names = pd.concat([pd.Series([f"name {i} of a customer" for i in range(100_000)], dtype="str")] * 8)
kept = []


def clean(step):
    return names.str.upper() + f" {step}"  # culprit


for step in range(1000):
    length = names.str.len().sum()
    kept.append(clean(step))
    print(step, flush=True)
