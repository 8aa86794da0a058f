"""A logging handler that keeps its records."""
import logging
import logging.handlers

handler = logging.handlers.MemoryHandler(10**9, flushLevel=logging.CRITICAL + 1)
log = logging.Logger("requests")
log.addHandler(handler)


def serve(number):
    log.warning("request %d took too long", number)  # culprit


number = 0
while True:
    serve(number)
    number += 1
