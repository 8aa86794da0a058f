import pyarrow as pa
import pyarrow.compute as pc

table = pa.table({"a": pa.array(range(500_000)), "b": pa.array([1.5] * 500_000)})
kept = []


def score(step):
    return pc.multiply(table["a"], pc.add(table["b"], step))  # culprit


for step in range(1000):
    total = pc.sum(pc.sqrt(table["b"])).as_py()
    kept.append(score(step))
    print(step, flush=True)
