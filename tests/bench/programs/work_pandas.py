"""pandas: group, merge, text columns.   work_pandas.py ROUNDS"""
import sys

import numpy
import pandas

import steady

random = numpy.random.default_rng(1)
ROWS = 5000
orders = pandas.DataFrame({"customer": random.integers(0, 400, ROWS), "item": random.integers(0, 60, ROWS),
                           "price": random.random(ROWS), "note": [f"order {i % 97} by post" for i in range(ROWS)]})
customers = pandas.DataFrame({"customer": range(400), "town": [f"town {i % 31}" for i in range(400)]})


def step():
    both = orders.merge(customers, on="customer")
    both["gross"] = both["price"] * 1.19
    by_town = both.groupby("town")["gross"].agg(["sum", "mean", "max"])
    text = both["note"].str.upper().str.split(" ").str[1]
    by_item = both.pivot_table(index="town", columns="item", values="gross")
    return by_town.sort_values("sum"), text.value_counts(), by_item


steady.measure(step, int(sys.argv[1]))
