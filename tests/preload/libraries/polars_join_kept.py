import polars as pl

ROWS = 1_500_000


def prices(step):
    return pl.DataFrame({"key": range(1000), "price": [float(step)] * 1000})


def enrich(left, right):
    return left.join(right, on="key")  # culprit


kept = {}
base = pl.DataFrame([pl.int_range(ROWS, eager=True) % 1000, pl.int_range(ROWS, eager=True)], schema=["key", "sale"])
for step in range(1000):
    total = (base["sale"] * 2).sum()
    kept[step] = enrich(base, prices(step))
    print(step, flush=True)
