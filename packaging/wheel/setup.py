"""
What pyproject.toml cannot say of the wheel: for which machines its programs are.

The tag is computed from the programs themselves: manylinux_2_X where X is the newest version of a glibc symbol that they ask for
(PEP 600). The library lies in it twice: the command takes the one in older-glibc where the other would not be loaded. A program
that asks for a library that is not glibc's stops the build: other machines may not have it.
"""
import os
import pathlib
import re
import subprocess

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel

PROGRAMS = [pathlib.Path("kmemshim/native", name) for name in ("bin/kmemshim", "lib/older-glibc/libkmemshim.so", "lib/libkmemshim.so")]
GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}


def readelf(option, program):
    return subprocess.run(["readelf", option, "--wide", program], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def newest_glibc():
    """The newest version that a symbol of these programs has, as two numbers."""
    found = set()
    for program in PROGRAMS:
        others = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", program))) - GLIBC
        if others:
            raise SystemExit("%s asks for %s: link it into the program" % (program, ", ".join(sorted(others))))
        if program != PROGRAMS[-1]:
            found.update(re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("--version-info", program)))
    if not found:
        raise SystemExit("the programs were not built for glibc: there is no tag for this wheel")
    return max((int(major), int(minor)) for major, minor in found)


class PlatformDistribution(Distribution):
    def has_ext_modules(self):
        return True  # the package is of one kind of machine


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", "manylinux_%d_%d_%s" % (newest_glibc() + (os.uname().machine,))


glibc = newest_glibc()
pathlib.Path("kmemshim/_wheel.py").write_text(
    '"""Made by make wheel: what the command in native/ was built for."""\nMACHINE = %r\nGLIBC = %r\n' % (os.uname().machine, glibc))
setup(distclass=PlatformDistribution, cmdclass={"bdist_wheel": PlatformWheel})
