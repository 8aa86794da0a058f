"""A dictionary for each record."""
records = []


def record(number):
    return {"id": number, "price": number * 0.5, "sold": False}  # culprit


while True:
    records.append(record(len(records)))
