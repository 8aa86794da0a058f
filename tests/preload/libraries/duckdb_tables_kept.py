import duckdb

db = duckdb.connect()
db.execute("set threads to 2; set memory_limit to '8GB'")


def load(step):
    db.execute(f"create table day_{step} as select range as id, range * {step} as n, hash(range) as code from range(1500000)")  # culprit


def total(step):
    return db.execute(f"select sum(n) from day_{step}").fetchall()


for step in range(1000):
    load(step)
    total(step)
    print(step, flush=True)
