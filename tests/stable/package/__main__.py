"""python -m package"""
from . import store

if __name__ == "__main__":
    store.run()
    store.KEPT.append(bytearray(store.size(30)))
