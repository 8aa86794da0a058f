import polars as pl


def rows(step):
    return pl.DataFrame({"key": range(400_000), "value": [float(step)] * 400_000})


def enrich(left, right):
    return left.join(right, on="key")  # culprit


kept = {}
base = rows(0)
for step in range(1000):
    fresh = rows(step)
    kept[step] = enrich(base, fresh)
    print(step, flush=True)
