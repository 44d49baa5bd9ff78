"""Files of a skill -> their compiled code; runs inside walls, in the interpreter that will use it, and only parses.

Its input are texts that end with NUL: the folder, the hook's text, then the files by their relative paths. Of each file
it says five things, each as its length and its bytes: the path, the SHA-256 of what was read, Python's own hash of it,
its code, and the names in it. There is no code where it cannot be compiled, or not without a word: then it has to be
compiled in the run, which would say it there. The hook comes first, with the interpreter's number for compiled files
instead of a hash, and with how many descriptors it would leave instead of a path.
"""

# ruff: noqa: ANN001 - it runs in whatever Python a script needs
# mypy: disable-error-code="no-untyped-def,no-untyped-call,var-annotated"

import _imp
import marshal
import os
import sys
import warnings
from hashlib import sha256

LENGTH_BYTES = 8
LONGEST_FILE = 1_000_000
SALT = 0x5EED  # as in the hook
HOOK = "<frozen importlib._bootstrap_external>"  # what Python leaves out of tracebacks


def main() -> None:
    warnings.simplefilter("error")
    folder, hook, *names = sys.stdin.buffer.read().split(b"\0")[:-1]
    tell(b"%d" % descriptors_left(), hook, HOOK, sys.modules["_frozen_importlib_external"].MAGIC_NUMBER)
    for name in names:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                source = file.read(LONGEST_FILE + 1)
        except OSError:
            source = b""
        tell(name, source, os.fsdecode(name), _imp.source_hash(SALT, source))


def descriptors_left() -> int:
    """By the one module that the hook needs in a cold run: some libffi keep their own file open once it is there."""
    before = next_descriptor()
    try:
        __import__("_ctypes")
    except ImportError:
        return 1  # the hook cannot do without
    return next_descriptor() - before


def next_descriptor() -> int:
    number = os.open(os.devnull, os.O_RDONLY)
    os.close(number)
    return number


def tell(name, source, shown, known_by) -> None:
    code, names = b"", b""
    try:
        if len(source) <= LONGEST_FILE:
            made = compile(source, shown, "exec", dont_inherit=True, optimize=0)
            code, names = marshal.dumps(made), "\0".join(sorted(all_names(made))).encode()
    except Exception:  # noqa: BLE001, S110 - whatever it is, the run is told
        pass
    for part in (name, sha256(source).hexdigest().encode(), known_by, code, names):
        sys.stdout.buffer.write(len(part).to_bytes(LENGTH_BYTES, "big") + part)
    sys.stdout.buffer.flush()


def all_names(code) -> "set[str]":
    """What it could import, among others."""
    found, left = set(), [code]
    while left:
        each = left.pop()
        found.update(part for name in each.co_names for part in name.split("."))
        left += [inner for inner in each.co_consts if isinstance(inner, type(code))]
    return found


if __name__ == "__main__":
    main()
