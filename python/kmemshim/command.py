"""
Where is the command kmemshim, and can it run here? A wheel has it in the folder `native` of this package; else it is in PATH.

A wheel also has _wheel.py: the machine and the glibc that its command was built for.
"""
import os
import shutil

NATIVE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "native", "bin", "kmemshim")


class Missing(Exception):
    """There is no command that can run here. The text says why and what to do."""


def find():
    """The path of the command; Missing."""
    try:
        from . import _wheel
    except ImportError:
        found = shutil.which("kmemshim")
        if not found:
            raise Missing("the command kmemshim is not in PATH")
        return found
    _check_machine(_wheel)
    if not os.access(NATIVE, os.X_OK):
        raise Missing("%s cannot be run: install kmemshim again" % NATIVE)
    return NATIVE


def _glibc():
    """Its version as two numbers; None where there is another C library."""
    try:
        name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
        return tuple(int(number) for number in version.split(".")[:2]) if name == "glibc" else None
    except (AttributeError, OSError, ValueError):
        return None


def _check_machine(built_for):
    """pip asks the same before it installs. A folder of packages may be copied to another machine later."""
    machine, glibc = os.uname().machine, _glibc()
    if machine == built_for.MACHINE and glibc is not None and glibc >= built_for.GLIBC:
        return
    raise Missing("this installation is for %s with glibc %d.%d or newer, and this Python runs on %s with %s: build kmemshim here from source" % (
        (built_for.MACHINE,) + built_for.GLIBC + (machine, "glibc %d.%d" % glibc if glibc is not None else "another C library")))
