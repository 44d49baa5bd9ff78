"""Instructions -> limits, no new privileges, no capabilities, Landlock and seccomp around this very process.

Loaded by the keeper, which has no time to load much else; every function here acts on the process that calls it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypedDict

    class Grant(TypedDict):
        """Rights on a path and what is below; with `spared`, entry by entry around those."""

        path: str
        rights: int
        spared: list[str]
        is_optional: bool
        identity: list[int] | None
        """Device and inode of what was judged; anything else in its place is granted to nobody."""

    class Instructions(TypedDict):
        """What to apply; numbers as the kernel takes them."""

        folders: list[str]
        links: dict[str, str]
        limits: dict[str, list[int]]
        processes: int
        ruleset: list[int]
        file_rights: int
        grants: list[Grant]


__all__ = ["LAYERS", "become_subreaper", "refuse_dumps", "set_filter"]

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 22, 36, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION = 0x20080522
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_RULE_PATH_BENEATH = 1
OPEN_PATH = os.O_PATH | os.O_CLOEXEC

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def make_folders(instructions: Instructions) -> None:
    for folder in instructions["folders"]:
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                raise
    for link, target in instructions["links"].items():
        try:
            os.symlink(target, link)
        except FileExistsError:  # of one that waited in vain; nothing has run here
            if os.readlink(link) != target:
                raise


def set_limits(instructions: Instructions) -> None:
    for name, (soft, hard) in instructions["limits"].items():
        _limit(name, soft, hard)
    # Outside a user namespace the kernel counts every task of the user.
    processes = instructions["processes"] + tasks_of(os.getuid()) - 1
    _limit("RLIMIT_NPROC", processes, processes)


def _limit(name: str, soft: int, hard: int) -> None:
    number = getattr(resource, name)
    _, ceiling = resource.getrlimit(number)
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(number, (soft, hard))


def tasks_of(user: int) -> int:
    """Threads of all processes of `user`; the folder that lists them has one link for each, and two more."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                found = os.stat(f"/proc/{name}/task")
            except OSError:
                continue
            count += found.st_nlink - 2 if found.st_uid == user else 0
    return count


def refuse_new_privileges(_: Instructions) -> None:
    control(PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities(_: Instructions) -> None:
    """None are left, and without new privileges none come back with the next program."""
    control(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    check(libc.capset(header, (ctypes.c_uint32 * 6)()))


def restrict_files(instructions: Instructions) -> None:
    attributes = instructions["ruleset"]
    words = (ctypes.c_uint64 * len(attributes))(*attributes)
    ruleset = call(LANDLOCK_CREATE_RULESET, words, ctypes.sizeof(words), 0)
    for grant in instructions["grants"]:
        _allow_around(ruleset, grant, instructions["file_rights"])
    call(LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow_around(ruleset: int, grant: Grant, file_rights: int) -> None:
    path, spared = grant["path"], set(grant["spared"])
    if path in spared:
        return
    try:
        number = os.open(path, OPEN_PATH)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        if grant["is_optional"] or spared:
            return
        raise
    seen = os.fstat(number)  # of what the rule will be about, whatever names lead there
    if grant["identity"] and [seen.st_dev, seen.st_ino] != grant["identity"]:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
    above = {each for place in spared for each in _above(place)}
    try:
        _allow_below(ruleset, number, path, above - spared, spared, grant["rights"], file_rights)
    finally:
        os.close(number)


def _allow_below(
    ruleset: int, number: int, path: str, above: set[str], spared: set[str], rights: int, file_rights: int
) -> None:
    """All of an open folder, or entry by entry where something in it is spared; links lead elsewhere and are left out.

    Each entry is opened from its folder: a link that takes a place meanwhile leads the grant nowhere.
    """
    if path not in above:
        _allow(ruleset, number, rights, file_rights)
        return
    for name in _names(number):
        place = f"{path.rstrip('/')}/{name}"
        if place in spared:
            continue
        try:
            entry = os.open(name, OPEN_PATH | os.O_NOFOLLOW, dir_fd=number)
        except (FileNotFoundError, PermissionError):  # gone meanwhile, or closed to this user
            continue
        try:
            if not stat.S_ISLNK(os.fstat(entry).st_mode):
                _allow_below(ruleset, entry, place, above, spared, rights, file_rights)
        finally:
            os.close(entry)


def _names(folder: int) -> list[str]:
    try:
        listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except (NotADirectoryError, PermissionError):
        return []
    try:
        return os.listdir(listed)
    finally:
        os.close(listed)


def _above(path: str) -> Iterator[str]:
    while len(path) > 1:
        path = path.rpartition("/")[0] or "/"
        yield path


def _allow(ruleset: int, number: int, rights: int, file_rights: int) -> None:
    if not stat.S_ISDIR(os.fstat(number).st_mode):
        rights &= file_rights
    if not rights:  # only folders have those; the kernel takes no empty rule
        return
    # The kernel's structure is packed: 8 bytes of rights, 4 of descriptor.
    rule = rights.to_bytes(8, sys.byteorder) + number.to_bytes(4, sys.byteorder)
    call(LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, ctypes.c_char_p(rule), 0)


LAYERS: dict[str, Callable[[Instructions], None]] = {
    "folders": make_folders,
    "limits": set_limits,
    "no_new_privs": refuse_new_privileges,
    "capabilities": drop_capabilities,
    "landlock": restrict_files,
}


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("code", ctypes.c_char_p))


def set_filter(program: bytes) -> None:
    control(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(_Program(len(program) // 8, program)))


def become_subreaper() -> None:
    """Orphans among the descendants become children of this process."""
    control(PR_SET_CHILD_SUBREAPER, 1)


def refuse_dumps() -> None:
    control(PR_SET_DUMPABLE, 0)


def control(option: int, *arguments: object) -> None:
    words = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    padding = [ctypes.c_ulong(0)] * (4 - len(words))
    check(libc.prctl(option, *words, *padding))


def call(number: int, *arguments: object) -> int:
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return check(libc.syscall(ctypes.c_long(number), *words))


def check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
