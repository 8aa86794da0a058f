"""
What a program says of itself: where it is, and what is worth keeping. Nothing happens in a program that is not recorded.

When failing  nothing is said; the program runs on.
"""
import collections
import ctypes

# Rows of the recorder's table (include/kmemshim.h), by the names that reports use. Devices: 8 is cuda:0, and so on.
ARENAS, OBJECTS = "python/arena", "python/object"
_DOMAINS = {0: "heap", 1: "mmap", 4: "shared", 7: ARENAS, 59: "library", 60: OBJECTS}
_DOMAINS.update((8 + device, "cuda:%d" % device) for device in range(32))
_ROWS = 64

HOST = ("heap", "mmap", "shared", ARENAS, "library")  # memory of the process, each byte in one of them
OBJECT_SAMPLE_BYTES = 256 << 10  # small objects are a sample, in arenas: for so much stands each of it
SURE = 4  # standard deviations of how many there are: one test in 30,000 is judged too high

# live_bytes now; peak_bytes the highest since the last phase() of the process; is_begun: False where no new phase could begin.
Domain = collections.namedtuple("Domain", "live_bytes peak_bytes is_begun")


def find(name, *arguments):
    """A function of the recorder; None where nothing is recorded."""
    try:
        function = getattr(ctypes.PyDLL(None), name)
    except (AttributeError, OSError):
        return None
    function.argtypes = list(arguments)
    function.restype = None
    return function


_step = find("kmemshim_recorder_step")
_mark = find("kmemshim_recorder_mark", ctypes.c_char_p)
_snapshot = find("kmemshim_recorder_snapshot", ctypes.c_char_p)
_phase = find("kmemshim_recorder_phase", ctypes.c_void_p, ctypes.c_size_t)
_usage = find("kmemshim_recorder_usage", ctypes.c_void_p, ctypes.c_size_t)
_Rows = ctypes.c_uint64 * (3 * _ROWS)
_rows = _Rows()
for _function in (_phase, _usage):
    if _function is not None:
        _function.restype = ctypes.c_size_t


def is_recorded():
    return _phase is not None


def _bytes(name):
    """Any text: a surrogate is not worth an exception in somebody's training run, nor is a zero byte."""
    return str(name)[:256].encode("utf-8", "replace").replace(b"\0", b"?")


def step():
    """A step begins: a batch, a request. The report then counts what is kept in each."""
    if _step is not None:
        _step()


def mark(name):
    """Gives this moment a name, such as "epoch 3". Its first 55 bytes are kept."""
    if _mark is not None:
        _mark(_bytes(name))


def snapshot(name=""):
    """The same, and keeps what each line holds now."""
    if _snapshot is not None:
        _snapshot(_bytes(name))


def _table(rows):
    return {name: Domain(rows[3 * row], rows[3 * row + 1], bool(rows[3 * row + 2])) for row, name in _DOMAINS.items()
            if row == 0 or rows[3 * row + 1] != 0}


def phase():
    """
    Ends a phase, such as a test, and begins the next one. Afterwards `kmemshim peak --phase` ranks the lines at the peak of the new one; the
    peak of the process stays what it is in all other reports. Returns {"heap": Domain(...), "cuda:0": ...} of those that were ever used; None
    where nothing is recorded.
    """
    if _phase is None or _phase(_rows, ctypes.sizeof(_rows)) == 0:
        return None
    return _table(_rows)


def usage():
    """The same, and the phase goes on."""
    if _usage is None or _usage(_rows, ctypes.sizeof(_rows)) == 0:
        return None
    return _table(_rows)


class Meter:
    """
    What a piece of the program kept, and what it held at most, above what was live as it began. begin() and end() make nothing that would
    show in these figures.
    """

    def __init__(self):
        self._before, self._after = _Rows(), _Rows()
        self._size = ctypes.sizeof(_Rows)
        self._filled = 0

    def begin(self):
        self._filled = _phase(self._before, self._size) if _phase is not None else 0

    def end(self):
        self._filled = _usage(self._after, self._size) if self._filled != 0 else 0

    def is_known(self):
        return self._filled != 0

    def _sum(self, figure):
        before, after = _table(self._before), _table(self._after)
        more = {name: figure(now) - (before[name].live_bytes if name in before else 0) for name, now in after.items()}
        objects = more.get(OBJECTS, 0)
        objects -= SURE * (max(objects, 0) * OBJECT_SAMPLE_BYTES) ** 0.5
        # objects may lie in arenas that were free before
        return int(sum(more.get(name, 0) for name in HOST if name != ARENAS) + max(more.get(ARENAS, 0), objects))

    def kept_bytes(self):
        return self._sum(lambda domain: domain.live_bytes)

    def peak_bytes(self):
        """Of each kind of memory the highest: where two were at their highest at different moments, this is more than ever was at once."""
        return max(self._sum(lambda domain: domain.peak_bytes), 0)
