"""
What do Out[], _ and the last traceback keep alive?

Sizes are those that the objects tell: nbytes of arrays and tensors (of a view: of the array that it keeps), memory_usage() of data
frames, sys.getsizeof() of the rest, and of lists, tuples, sets and dicts their elements one level deep. An object that two names keep is
counted once, and both are named.
"""
import sys
import types

ELEMENTS_MAX = 10000  # of a container
NOT_IN_MEMORY = {"h5py", "zarr", "dask", "tables", "netCDF4"}  # nbytes of theirs lie in a file


def _root(value):
    return (type(value).__module__ or "").split(".")[0]


def _array_bytes(value):
    """None when it is no array."""
    root = _root(value)
    if root in ("builtins", "types") and not isinstance(value, memoryview) or root in NOT_IN_MEMORY:
        return None
    if root == "pandas" and hasattr(value, "memory_usage"):
        usage = value.memory_usage(index=True)
        return int(usage.sum() if hasattr(usage, "sum") else usage)
    if root == "polars" and hasattr(value, "estimated_size"):
        return int(value.estimated_size())
    if root == "torch" and hasattr(value, "element_size"):
        storage = getattr(value, "untyped_storage", None)  # a view keeps all of it
        return int(storage().nbytes()) if storage is not None else value.element_size() * value.nelement()
    if root == "numpy":
        while getattr(value, "base", None) is not None and hasattr(value.base, "nbytes"):
            value = value.base
    if root == "scipy" and hasattr(value, "data") and hasattr(value.data, "nbytes"):
        return sum(int(getattr(getattr(value, name, None), "nbytes", 0)) for name in ("data", "indices", "indptr", "row", "col"))
    count = getattr(value, "nbytes", None)
    return int(count) if isinstance(count, int) or hasattr(count, "__index__") else None


def bytes_of(value, is_element=False):
    """At least so many: what objects of other kinds refer to is not counted."""
    try:
        if isinstance(value, type) or isinstance(value, types.ModuleType):
            return 0
        count = _array_bytes(value)
        if count is not None:
            return count
        total = sys.getsizeof(value)
        if not is_element and type(value) in (list, tuple, set, frozenset, dict):
            elements = list(value.values()) if isinstance(value, dict) else list(value)
            seen = {}
            for element in elements[:ELEMENTS_MAX]:
                seen[id(element)] = element
            part = sum(bytes_of(element, True) for element in seen.values())
            total += part if len(elements) <= ELEMENTS_MAX else part * len(elements) // ELEMENTS_MAX
        return total
    except Exception:  # a class may do anything when it is asked
        return 0


def kind_of(value):
    shape = None
    try:
        if _root(value) in ("numpy", "torch", "pandas", "polars", "jax", "jaxlib", "tensorflow", "cupy"):
            shape = tuple(value.shape)
    except Exception:
        pass
    name = type(value).__name__
    if shape is not None:
        return "%s %s" % (name, "\u00d7".join(str(extent) for extent in shape) or "scalar")
    return "%s of %d" % (name, len(value)) if type(value) in (list, tuple, set, frozenset, dict, bytes, bytearray, str) else name


class Kept:
    def __init__(self, value):
        self.value = value
        self.names = []
        self.bytes = bytes_of(value)


def _tracebacks(error, traceback):
    """Of an exception and of those that led to it."""
    seen = set()
    while True:
        if traceback is not None and id(traceback) not in seen:
            seen.add(id(traceback))
            yield traceback
        if error is None or id(error) in seen:
            return
        seen.add(id(error))
        error = error.__cause__ or error.__context__
        traceback = error.__traceback__ if error is not None else None


def of_results(namespace):
    """Out[n], and _, __, ___ where they are no Out[n]."""
    found = {}

    def add(name, value):
        kept = found.setdefault(id(value), None) or Kept(value)
        found[id(value)] = kept
        kept.names.append(name)

    results = namespace.get("_oh") or {}
    for number, value in list(results.items()):
        if value is not results:
            add("Out[%s]" % number, value)
    for name in ("_", "__", "___"):
        value = namespace.get(name)
        if value is not None and not isinstance(value, str) or isinstance(value, str) and value:
            if id(value) not in found:
                add(name, value)
    return found


def of_traceback(namespace):
    """Variables in the functions of the last traceback: name and function."""
    found = {}
    for traceback in _tracebacks(getattr(sys, "last_value", None), getattr(sys, "last_traceback", None)):
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_locals is not frame.f_globals and frame.f_locals is not namespace:
                for name, value in list(frame.f_locals.items()):
                    kept = found.get(id(value)) or Kept(value)
                    found[id(value)] = kept
                    place = "%s in %s" % (name, frame.f_code.co_name)
                    if place not in kept.names:
                        kept.names.append(place)
            traceback = traceback.tb_next
    return found


def name_owners(found, namespace):
    """A variable of the notebook that is the same object keeps it as well: it is named."""
    for name, value in list(namespace.items()):
        if not name.startswith("_") and id(value) in found and found[id(value)].value is value:
            found[id(value)].names.append("variable " + name)
