"""Amounts of money."""
import decimal

amounts = []


def amount(number):
    return decimal.Decimal(number)  # culprit


while True:
    amounts.append(amount(len(amounts)))
