"""Keeps one block of a size of its own at each of its places: a pair of lines is right when the sizes are equal (measure.py)."""
