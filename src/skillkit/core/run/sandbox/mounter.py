"""Paths -> mounts on themselves inside the walls that another program (bubblewrap) has put up, before a script starts.

Run by its path with `python -I -S -X utf8`: `mounter.py PLACES READY GO -- BWRAP...`, where PLACES is the number of a
readable descriptor.

Theory of operation. Bubblewrap reads the list of all mounts again for each mount that it makes (200 of them take it
150 ms), cannot guard a link, and takes paths by name. So this program leaves a helper behind and becomes bubblewrap.
Inside its walls a shell says on READY that they stand, and waits on GO. The helper then enters their namespaces, opens
each path once without following any link, compares it with what was judged, and mounts it on itself by that
descriptor. A helper that fails or dies says nothing on GO, and the shell ends without starting the script.
"""

import os
import sys
from _ctypes import FUNCFLAG_CDECL, FUNCFLAG_USE_ERRNO, CFuncPtr, _SimpleCData, dlopen, dlsym, get_errno
from fcntl import F_DUPFD_CLOEXEC, F_GETFD, FD_CLOEXEC, fcntl, ioctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

FAILED_EXIT_CODE = 125
FIRST_FREE = 10
OPEN_TREE, MOVE_MOUNT, OPENAT2, MOUNT_SETATTR = 428, 429, 437, 442
READ_ONLY, NO_SETUID, NO_DEVICES = 1, 2, 4
EMPTY_PATH, RECURSIVE, CLONE = 0x1000, 0x8000, 1
FROM_DESCRIPTOR, ONTO_DESCRIPTOR = 0x4, 0x40
NO_LINKS = 0x04
HERE = -100  # AT_FDCWD
NS_GET_USERNS = 0xB701


class _Long(_SimpleCData):  # type: ignore[type-arg]  # as in ctypes, which takes 9 ms to load
    _type_ = "l"


class _Call(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Long


def function(name: str) -> "_Call":
    return _Call(dlsym(dlopen(None, 0), name))  # type: ignore[arg-type]  # None is this process


syscall, setns = (function(name) for name in ("syscall", "setns"))


def checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(get_errno(), os.strerror(get_errno()), what)
    return result


def main() -> "NoReturn":
    try:
        separator = sys.argv.index("--")
        source, *numbers = map(int, sys.argv[1:separator])
        places = _places(source)
        program = sys.argv[separator + 1 :]
        _require_free(numbers)
        (is_ready, ready), (may_go, go), (told, info) = _pipe(), _pipe(), _pipe()
        if not os.fork():  # noqa: TID251 - the helper; what was started becomes bubblewrap
            for number in (0, 1, ready, may_go, info):
                os.close(number)
            _guard_inside(places, told, is_ready, go)
        os.dup2(ready, numbers[0])
        os.dup2(may_go, numbers[1])
        os.set_inheritable(info, True)
        words = [program[0], "--info-fd", str(info), *program[1:]]
        os.execve(words[0], words, os.environb)  # noqa: S606, TID251 - this program is the process that was started
    except BaseException as error:  # noqa: BLE001 - whatever it is, the walls do not stand
        _fail(error)


def _fail(error: BaseException) -> "NoReturn":
    os.write(2, f"skillkit-walls: guard: {error}\n".encode(errors="backslashreplace"))
    os._exit(FAILED_EXIT_CODE)


def _places(number: int) -> "list[tuple[str, int, int, bytes]]":
    """Lines of device, inode, kind and path; they end with NUL, which no path holds."""
    content = b""
    while part := os.pread(number, 1 << 16, len(content)):
        content += part
    os.close(number)
    found = []
    for line in content.split(b"\0")[:-1]:
        device, inode, kind, path = line.split(b" ", 3)
        found.append((os.fsdecode(path), int(device), int(inode), kind))
    return found


def _require_free(numbers: "list[int]") -> None:
    """What bubblewrap would not get anyway may be there: newer libffi keep their own file open at the first number."""
    for number in numbers:
        try:
            is_for_us = fcntl(number, F_GETFD) & FD_CLOEXEC
        except OSError:
            continue
        if not is_for_us:
            raise OSError(0, "the descriptor is in use", str(number))


def _pipe() -> "tuple[int, int]":
    """Clear of the numbers that are handed out."""
    low = os.pipe()
    high = (fcntl(low[0], F_DUPFD_CLOEXEC, FIRST_FREE), fcntl(low[1], F_DUPFD_CLOEXEC, FIRST_FREE))
    os.close(low[0])
    os.close(low[1])
    return high


def _guard_inside(places: "list[tuple[str, int, int, bytes]]", told: int, is_ready: int, go: int) -> "NoReturn":
    """Nothing is said where bubblewrap gave up: it has said why itself."""
    try:
        inside = _process_inside(told)
        if not inside or not os.read(is_ready, 1):
            os._exit(FAILED_EXIT_CODE)
        _enter(inside)
        for path, device, inode, kind in places:
            guard(path, (device, inode), kind)
        os.write(go, b"go\n")
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the walls do not stand
        _fail(error)


def _process_inside(told: int) -> str:
    """The number of a process inside, from the few words that bubblewrap writes; empty if it wrote none."""
    text = b""
    while b"}" not in text and (part := os.read(told, 4096)):
        text += part
    after = text.partition(b'"child-pid":')[2].lstrip()
    return after[: len(after) - len(after.lstrip(b"0123456789"))].decode()


def _enter(process: str) -> None:
    """Its mounts, with the rights of whoever made them: the user namespace that owns them."""
    mounts = os.open(f"/proc/{process}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    owner = ioctl(mounts, NS_GET_USERNS)
    checked(setns(owner, 0), "user namespace")
    checked(setns(mounts, 0), "mount namespace")


def guard(path: str, identity: "tuple[int, int]", kind: bytes) -> None:
    """`r` makes it read-only, `w` a writable mount that cannot be renamed, `c` only compares."""
    try:
        number = open_thing(path)
    except PermissionError:  # a script of the same user cannot reach it either
        return
    seen = os.fstat(number)
    if identity[0] >= 0 and (seen.st_dev, seen.st_ino) != identity:
        raise OSError(0, "is not what it was when the walls were planned", path)
    if kind != b"c":
        tree = checked(syscall(OPEN_TREE, number, b"", CLONE | os.O_CLOEXEC | EMPTY_PATH | RECURSIVE), path)
        kept = NO_SETUID | NO_DEVICES | (READ_ONLY if kind == b"r" else 0)
        dropped = READ_ONLY if kind == b"w" else 0
        attributes = kept.to_bytes(8, sys.byteorder) + dropped.to_bytes(8, sys.byteorder) + bytes(16)
        checked(syscall(MOUNT_SETATTR, tree, b"", EMPTY_PATH | RECURSIVE, attributes, len(attributes)), path)
        checked(syscall(MOVE_MOUNT, tree, b"", number, b"", FROM_DESCRIPTOR | ONTO_DESCRIPTOR), path)
        os.close(tree)
    os.close(number)


def open_thing(path: str) -> int:
    """A descriptor of the thing itself; OSError where a link is on the way."""
    flags = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW
    how = flags.to_bytes(8, sys.byteorder) + bytes(8) + NO_LINKS.to_bytes(8, sys.byteorder)
    return checked(syscall(OPENAT2, HERE, os.fsencode(path), how, len(how)), path)


if __name__ == "__main__":
    main()
