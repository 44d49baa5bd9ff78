"""Paths -> mounts on themselves in a mount namespace of this process, which then becomes another program (bubblewrap).

Run by its path with `python -I -S -X utf8`: `mounter.py PLACES -- PROGRAM...`, where PLACES is the number of a
readable descriptor. It exists because bubblewrap reads the list of all mounts again for each mount that it makes (200
of them take it 150 ms), cannot guard a link, and takes paths by name. Here each path is opened once, without
following any link, compared with what was judged, and mounted by that descriptor.
"""

import os
import sys
from _ctypes import FUNCFLAG_CDECL, FUNCFLAG_USE_ERRNO, CFuncPtr, _SimpleCData, dlopen, dlsym, get_errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

FAILED_EXIT_CODE = 125
MS_BIND, MS_REC, MS_SLAVE = 4096, 16384, 1 << 19
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
OPENAT2, MOUNT_SETATTR = 437, 442
READ_ONLY, NO_SETUID, NO_DEVICES = 1, 2, 4
EMPTY_PATH, RECURSIVE = 0x1000, 0x8000
NO_LINKS = 0x04
HERE = -100  # AT_FDCWD


class _Long(_SimpleCData):  # type: ignore[type-arg]  # as in ctypes, which takes 9 ms to load
    _type_ = "l"


class _Call(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Long


def _function(name: str) -> "_Call":
    return _Call(dlsym(dlopen(None, 0), name))  # type: ignore[arg-type]  # None is this process


syscall, mount, unshare = (_function(name) for name in ("syscall", "mount", "unshare"))


def checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(get_errno(), os.strerror(get_errno()), what)
    return result


def main() -> "NoReturn":
    try:
        separator = sys.argv.index("--")
        places = _places(int(sys.argv[1]))
        _enter_namespaces()
        for path, device, inode, is_read_only in places:
            _mount_on_itself(path, (device, inode), is_read_only=is_read_only)
        program = sys.argv[separator + 1 :]
        os.execve(program[0], program, os.environb)  # noqa: S606, TID251 - this program is the process that was started
    except BaseException as error:  # noqa: BLE001 - whatever it is, the walls do not stand
        os.write(2, f"skillkit-walls: guard: {error}\n".encode(errors="backslashreplace"))
        os._exit(FAILED_EXIT_CODE)


def _places(number: int) -> "list[tuple[str, int, int, bool]]":
    """Lines of device, inode, 1 for read-only and the path; they end with NUL, which no path holds."""
    content = b""
    while part := os.pread(number, 1 << 16, len(content)):
        content += part
    os.close(number)
    found = []
    for line in content.split(b"\0")[:-1]:
        device, inode, is_read_only, path = line.split(b" ", 3)
        found.append((os.fsdecode(path), int(device), int(inode), is_read_only == b"1"))
    return found


def _enter_namespaces() -> None:
    """Ids stay what they are; the mounts made here are nobody else's."""
    user, group = os.geteuid(), os.getegid()
    checked(unshare(NEW_USER | NEW_MOUNTS), "namespaces")
    for name, content in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        number = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        os.write(number, content.encode())
        os.close(number)
    checked(mount(None, b"/", None, MS_REC | MS_SLAVE, None), "/")


def _mount_on_itself(path: str, identity: "tuple[int, int]", *, is_read_only: bool) -> None:
    try:
        number = _opened(path)
    except PermissionError:  # a script of the same user cannot reach it either
        return
    seen = os.fstat(number)
    if identity[0] >= 0 and (seen.st_dev, seen.st_ino) != identity:
        raise OSError(0, "is not what it was when the walls were planned", path)
    place = f"/proc/self/fd/{number}".encode()
    checked(mount(place, place, None, MS_BIND | MS_REC, None), path)
    os.close(number)
    number = _opened(path)  # now the mount, not what it covers
    flags = NO_SETUID | NO_DEVICES | (READ_ONLY if is_read_only else 0)
    attributes = flags.to_bytes(8, sys.byteorder) + bytes(24)
    checked(syscall(MOUNT_SETATTR, number, b"", EMPTY_PATH | RECURSIVE, attributes, len(attributes)), path)
    os.close(number)


def _opened(path: str) -> int:
    """A descriptor of the thing itself; OSError where a link is on the way."""
    flags = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW
    how = flags.to_bytes(8, sys.byteorder) + bytes(8) + NO_LINKS.to_bytes(8, sys.byteorder)
    return checked(syscall(OPENAT2, HERE, os.fsencode(path), how, len(how)), path)


if __name__ == "__main__":
    main()
