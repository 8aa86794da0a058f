import pyarrow as pa
import pyarrow.compute as pc

column = pa.array(range(100_000))
table = pa.table({"a": pa.concat_arrays([column] * 40), "b": pa.concat_arrays([column.cast("float64")] * 40)})
kept = []


def score(step):
    return pc.multiply(table["a"], pc.add(table["b"], step))  # culprit


for step in range(1000):
    total = pc.sum(pc.sqrt(table["b"])).as_py()
    kept.append(score(step))
    print(step, flush=True)
