"""
python -m kmemshim, and the script `kmemshim` of a wheel: this process becomes the command.

It is then as if the shell had started it: the same process, arguments, open files, signals and environment.

When failing  one line, and exit status 2 as for a wrong option.
"""
import os
import signal
import sys

EXIT_USAGE = 2


def _environment():
    """As this Python got it: where the locale is C, Python has set LC_CTYPE for itself since (PEP 538)."""
    environment = dict(os.environb)
    try:
        with open("/proc/self/environ", "rb") as file:
            had_it = any(row.startswith(b"LC_CTYPE=") for row in file.read().split(b"\0"))
    except OSError:
        had_it = True
    if not had_it:
        environment.pop(b"LC_CTYPE", None)
    return environment


def _cannot(why):
    print("kmemshim: %s" % why, file=sys.stderr)
    return EXIT_USAGE


def main():
    from . import command
    try:
        path = command.find()
    except command.Missing as error:
        return _cannot(error)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(path, [path] + sys.argv[1:], _environment())
    except OSError as error:
        return _cannot("%s cannot be run: %s" % (path, error.strerror))


if __name__ == "__main__":
    sys.exit(main())
