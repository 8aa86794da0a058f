"""Plain instances: a table of values for each, made with the instance."""
orders = []


class Order:
    def __init__(self, number):
        self.number = number
        self.amount = number * 1.5  # a float of its own
        self.is_paid = False


def receive(number):
    return Order(number)  # culprit


while True:
    orders.append(receive(len(orders)))
