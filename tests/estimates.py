"""Is an estimate right? For tests of what is told of samples: each bound here has a law, and a chance of failing.

Small Python objects are drawn byte by byte. So the number of samples among `wanted` bytes is a Poisson number whose mean is wanted / SAMPLE_BYTES, and each
sample stands for SAMPLE_BYTES. Of the blocks of a line `holders` draws a certain number.
"""
import functools
import itertools
import math

CHANCE = 1e-7  # that a right estimate is below its bounds, and that it is above: one run of the suite asks some hundred times
SAMPLE_BYTES = 256 << 10  # KMEM_PYTHON_SAMPLE_BYTES


@functools.lru_cache(maxsize=None)
def counts(mean):
    """The least and the most of a Poisson number, but for CHANCE on each side."""
    least, until = None, 0
    for count in itertools.count():
        until += math.exp(count * math.log(mean) - mean - math.lgamma(count + 1)) if mean > 0 else 1
        if least is None and until >= CHANCE:
            least = count
        if 1 - until < CHANCE:
            return least, count


@functools.lru_cache(maxsize=None)
def drawn(count, share):
    """The least and the most of `count` draws that fall on this share, but for CHANCE on each side. They vary less where none is drawn twice."""
    until, least = 0, None
    for hits in range(count + 1):
        until += math.comb(count, hits) * share ** hits * (1 - share) ** (count - hits)
        if least is None and until >= CHANCE:
            least = hits
        if 1 - until < CHANCE:
            return least, hits


def bounds(wanted, sample_bytes=SAMPLE_BYTES):
    """The least and the most that are told of so many bytes of small objects, or of small blocks of a sampled heap."""
    least, most = counts(wanted / sample_bytes)
    return least * sample_bytes, most * sample_bytes


def is_right(told, wanted, others=0, sample_bytes=SAMPLE_BYTES):
    """Are `told` bytes an estimate of `wanted` bytes, and of at most `others` beside them, which nobody has counted?"""
    return bounds(wanted, sample_bytes)[0] <= told <= bounds(wanted + others, sample_bytes)[1]
