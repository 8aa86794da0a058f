"""Rows of a query, all of them fetched."""
import sqlite3

base = sqlite3.connect(":memory:")
base.execute("create table people (id integer, name text, town text)")
base.executemany("insert into people values (?, ?, ?)", ((1000 + n, f"name {n}", f"town {n}") for n in range(2000)))
results = []


def query():
    return base.execute("select * from people").fetchall()  # culprit


while True:
    results.append(query())
