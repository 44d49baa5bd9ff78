"""A command -> the same command, and nobody in it reaches an abstract unix socket of a program outside.

Run by its path with `python -I -S -X utf8`: `scoper.py BWRAP...`. On the host's network those sockets have no file
that walls could leave out. Landlock, from its sixth version on, tells who is inside by descent; it limits no files
here, so that bubblewrap can mount what it likes afterwards.
"""

import os
import sys
from _ctypes import FUNCFLAG_CDECL, FUNCFLAG_USE_ERRNO, CFuncPtr, _SimpleCData, dlopen, dlsym, get_errno

FAILED_EXIT_CODE = 125
CREATE_RULESET, RESTRICT_SELF = 444, 446
NO_NEW_PRIVILEGES = 38
NOTHING, ABSTRACT_SOCKETS = 0, 1


class _Long(_SimpleCData):  # type: ignore[type-arg]  # as in ctypes, which takes 9 ms to load
    _type_ = "l"


class _Text(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "z"


class _Call(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Long


def _function(name: str) -> "_Call":
    return _Call(dlsym(dlopen(None, 0), name))  # type: ignore[arg-type]  # None is this process


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(get_errno(), os.strerror(get_errno()))
    return result


def scope() -> None:
    """For this process and all that come from it."""
    syscall, control = _function("syscall"), _function("prctl")
    # What it handles: files, network, scopes; 8 bytes each.
    attributes = b"".join(number.to_bytes(8, sys.byteorder) for number in (NOTHING, NOTHING, ABSTRACT_SOCKETS))
    words = (_Long(CREATE_RULESET), _Text(attributes), _Long(len(attributes)), _Long(0))
    ruleset = _checked(syscall(*words))
    _checked(control(_Long(NO_NEW_PRIVILEGES), _Long(1), _Long(0), _Long(0), _Long(0)))
    _checked(syscall(_Long(RESTRICT_SELF), _Long(ruleset), _Long(0)))
    os.close(ruleset)


if __name__ == "__main__":
    try:
        scope()
        os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606, TID251 - this program is the process that was started
    except OSError as error:
        sys.stderr.write(f"skillkit-walls: scope: {error.strerror}\n")
        sys.exit(FAILED_EXIT_CODE)
