#!/usr/bin/env python3
"""Reads a .kmem file without kmemshim: totals of each domain, and the largest Python lines (docs/format.md).

    python3 docs/read_kmem.py FILE.kmem
"""
import struct
import sys
from collections import Counter

HEAD_BYTES, CHUNK_BYTES = 135168, 65536
DOMAINS, DIRECTORY = 53248, 69632
SITES, RECORDS = 1, 3


class Capture:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        if self.bytes[:8] != b"kmemshim" or self.word(8, "I") not in (9, 10, 11, 12, 13):
            raise SystemExit(f"{path}: is no capture of format 9 to 13")
        self.pid = self.word(32, "I")
        self.is_closed = self.word(8640, "I") == 0x02020202
        self.domains = [self.text(DOMAINS + 128 * row + 48, 32) for row in range(64)]
        self.records = self.section(RECORDS)

    def word(self, at, form="Q"):
        return struct.unpack_from("=" + form, self.bytes, at)[0]

    def text(self, at, room):
        return self.bytes[at:at + room].split(b"\0")[0].decode()

    def section(self, number):
        """The chunks of a section, in the order of the directory, as far as they are used."""
        parts = []
        for chunk in range(8192):
            section, _, inverted = self.bytes[DIRECTORY + 8 * chunk:DIRECTORY + 8 * chunk + 3]
            if section == number and section + inverted == 255:
                at = HEAD_BYTES + chunk * CHUNK_BYTES
                parts.append(self.bytes[at:at + CHUNK_BYTES])
        return b"".join(parts)[:self.word(8768 + 8 * number)]

    def sites(self):
        """(domain, stack, allocated bytes, freed bytes) of each record."""
        for site in struct.iter_unpack("=16xQQQQIIIHBB", self.section(SITES)):
            yield self.domains[site[8]], site[4], site[0], site[1]

    def frames(self, stack):
        """The words of a whole stack, innermost first."""
        if stack == 0:
            return []
        previous, count, own = struct.unpack_from("=12xIII", self.records, (stack - 1) * 8)
        frames = list(struct.unpack_from(f"={own}Q", self.records, (stack - 1) * 8 + 40))
        return frames if own == count else frames + self.frames(previous)[-(count - own):]

    def python_place(self, frame):
        """File and function of a Python frame."""
        at = (frame & 0xffffffff) * 8
        file, function = struct.unpack_from("=24xII", self.records, at)
        names = self.records[at + 40:at + 40 + file + function]
        return names[:file].decode(errors="replace"), names[file:].decode(errors="replace")


def main(path):
    capture = Capture(path)
    allocated, live, places = Counter(), Counter(), Counter()
    for domain, stack, allocated_bytes, freed_bytes in capture.sites():
        allocated[domain] += allocated_bytes
        live[domain] += allocated_bytes - freed_bytes
        python = [frame for frame in capture.frames(stack) if frame >> 63]
        if python:
            places[capture.python_place(python[0])] += allocated_bytes - freed_bytes
    print(f"pid {capture.pid}, {'closed' if capture.is_closed else 'not closed'}")
    for domain in allocated:
        print(f"{domain} allocated {allocated[domain]} live {live[domain]}")
    for (file, function), held in places.most_common(5):
        print(f"{held} live at {file} {function}")


if __name__ == "__main__":
    main(sys.argv[1])
