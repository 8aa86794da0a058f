"""Hashes as integers."""
import hashlib

seen = []
number = 0
while True:
    digest = hashlib.sha512(b"%d" % number).digest()
    seen.append(int.from_bytes(digest, "big"))  # culprit
    number += 1
