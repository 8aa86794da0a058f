"""The size of the block with this number."""


def size(number):
    return 100000 + 4096 * number
