"""Rows with attributes, made by a mapper in two steps."""


class Model:
    def __init__(self, **columns):
        self.__dict__.update(columns)  # culprit


class Session:
    def __init__(self):
        self.identity_map = {}

    def load(self, number):
        row = Model(id=number, name=None, mail=None, street=None, town=None, is_active=True)
        self.identity_map[number] = row
        return row


session = Session()
number = 0
while True:
    session.load(number)
    number += 1
