"""What sockets a run may have -> the classic BPF program that keeps its system calls in bounds, as bytes."""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass
from functools import cache

from skillkit.core.exceptions import SandboxUnavailableError

__all__ = ["program"]

# Each call with its number on x86_64 and aarch64, one number where both agree, `-` where it does not exist.
# What is not named here is allowed: a call that a newer kernel adds belongs here as soon as it can do harm.
REFUSED = """
ptrace=101/117 process_vm_readv=310/270 process_vm_writev=311/271 kcmp=312/272 pidfd_getfd=438
io_uring_setup=425 io_uring_enter=426 io_uring_register=427
bpf=321/280 perf_event_open=298/241 userfaultfd=323/282 keyctl=250/219 add_key=248/217 request_key=249/218
mount=165/40 umount2=166/39 open_tree=428 move_mount=429 fsopen=430 fsconfig=431 fsmount=432 fspick=433
mount_setattr=442 open_tree_attr=467 pivot_root=155/41 chroot=161/51 setns=308/268 unshare=272/97
swapon=167/224 swapoff=168/225 reboot=169/142 kexec_load=246/104 kexec_file_load=320/294
init_module=175/105 finit_module=313/273 delete_module=176/106 acct=163/89 quotactl=179/60 quotactl_fd=443
settimeofday=164/170 clock_settime=227/112 clock_adjtime=305/266 adjtimex=159/171 iopl=172/- ioperm=173/-
syslog=103/116 vhangup=153/58 open_by_handle_at=304/265 name_to_handle_at=303/264
sethostname=170/161 setdomainname=171/162 lookup_dcookie=212/18 nfsservctl=180/42
move_pages=279/239 migrate_pages=256/238
"""
# Their arguments lie behind pointers, which a filter cannot follow; every program has a way without them.
UNKNOWN = "clone3=435 fchmodat2=452 openat2=437"
CHECKED = """
clone=56/220 ioctl=16/29 chmod=90/- fchmod=91/52 fchmodat=268/53 socket=41/198 socketpair=53/199
open=2/- openat=257/56 creat=85/- mknod=133/- mknodat=259/33
"""

# Where the host's files and processes are in sight, Landlock does not cover these.
FAKED = """
chmod=90/- fchmod=91/52 fchmodat=268/53 chown=92/- lchown=94/- fchown=93/55 fchownat=260/54
setxattr=188/5 lsetxattr=189/6 fsetxattr=190/7 setxattrat=463 file_setattr=469
removexattr=197/14 lremovexattr=198/15 fremovexattr=199/16 removexattrat=466
"""
# So are times. But who sets "now" by name makes the file that is not there: pathlib, Ruby and busybox touch a file so,
# and to be told that it was done would lose it without a word. Each with the places of its path and its times.
TIMES = {"utime=132/-": (0, 1), "utimes=235/-": (0, 1), "futimesat=261/-": (1, 2), "utimensat=280/88": (1, 2)}
# Landlock lets these look at any file of the host: they tell of names that appear, and of attributes. They are answered
# as by a kernel or a file system that has no such thing, which every program knows.
WATCHING = (
    "inotify_init=253/- inotify_init1=294/26 inotify_add_watch=254/27 fanotify_init=300/262 fanotify_mark=301/263"
)
ATTRIBUTES = """
getxattr=191/8 lgetxattr=192/9 fgetxattr=193/10 getxattrat=464 file_getattr=468
listxattr=194/11 llistxattr=195/12 flistxattr=196/13 listxattrat=465
"""
SHARED_MEMORY = """
shmget=29/194 shmat=30/196 shmctl=31/195 shmdt=67/197 semget=64/190 semop=65/193 semctl=66/191 semtimedop=220/192
msgget=68/186 msgsnd=69/189 msgrcv=70/188 msgctl=71/187 mq_open=240/180 mq_unlink=241/181
"""
# Their argument of that place names a process: only 0, the caller itself, is allowed.
NAMES_A_PROCESS = {
    0: "prlimit64=302/261 sched_setaffinity=203/122 sched_setparam=142/118 sched_setscheduler=144/119 "
    "sched_setattr=314/274",
    1: "setpriority=141/140 ioprio_set=251/30",
}
TRUNCATE = "truncate=76/45"

AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
DONE = ERRNO  # errno 0: answered with success, and nothing happens
REFUSE, NO_ACCESS, NO_SUCH_CALL = ERRNO | errno.EPERM, ERRNO | errno.EACCES, ERRNO | errno.ENOSYS
NOT_SUPPORTED, NOT_THERE = ERRNO | errno.EOPNOTSUPP, ERRNO | errno.ENOENT

LOAD, AND, RETURN = 0x20, 0x54, 0x06
JUMP_IF_EQUAL, JUMP_IF_AT_LEAST = 0x15, 0x35
NUMBER_OFFSET, ARCHITECTURE_OFFSET = 0, 4

EVERY_BIT = 0xFFFFFFFF
NEW_NAMESPACES = 0x7E020000  # any CLONE_NEW* that clone takes
SETUID_BITS = 0o6000
CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE: without them the mode is left-over noise
TRUNCATES, ACCESS_MODE = 0o1000, 0o3
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
# They change a file or folder through a descriptor that is open for reading only.
READER_CHANGES = (
    0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602,  # flags, project and version (FS_IOC_SET*)
    0x40806685, 0x800C6613,  # verity, encryption
    0x50009401, 0x50009417, 0x5000940E, 0x50009418, 0x5000940F, 0x5000943F, 0x4008941A,  # btrfs subvolumes
)  # fmt: skip
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
SOCKET_TYPE, STREAM, DATAGRAM, RAW = 0xF, 1, 2, 3
TCP_AND_UDP = (0, 6, 17)


@dataclass(frozen=True, slots=True)
class _Condition:
    """The lower half of an argument, masked, is one of `values`; with `is_other`, none of them."""

    argument: int
    values: tuple[int, ...]
    mask: int = EVERY_BIT
    is_other: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    """All conditions hold -> the action."""

    conditions: tuple[_Condition, ...]
    action: int


@cache
def program(
    *,
    network: bool,
    unix_sockets: bool,
    loopback: bool = False,
    fake_metadata: bool = False,
    guard_truncate: bool = False,
    architecture: str = "",
) -> bytes:
    """The program for `architecture`, or for this machine's.

    `loopback` is for walls with a network of their own, where nothing else is to be reached: TCP and UDP.
    `fake_metadata` is for walls without namespaces: calls that change owner, mode, times and attributes succeed
    without effect, calls that reach other processes are refused, and nobody can watch files or read attributes.
    `guard_truncate` refuses to empty a file that is not open for writing, for Landlock before its third version.
    """
    architecture = architecture or platform.machine()
    if architecture not in AUDIT_ARCHITECTURES:
        raise SandboxUnavailableError(
            f"There is no system call filter for {architecture!r}, only for {', '.join(AUDIT_ARCHITECTURES)}. "
            "Use sandbox='off' to run with the caller's own rights.",
            missing=("seccomp",),
            remedy="sandbox='off'",
        )
    flat = {DONE: FAKED if fake_metadata else "", REFUSE: REFUSED, NO_SUCH_CALL: UNKNOWN}
    if fake_metadata:
        flat |= {REFUSE: REFUSED + SHARED_MEMORY, NO_SUCH_CALL: f"{UNKNOWN} {WATCHING}", NOT_SUPPORTED: ATTRIBUTES}
    flat[NO_ACCESS] = TRUNCATE if guard_truncate else ""
    code = _opening(architecture)
    for action, calls in flat.items():
        if numbers := tuple(_numbers(calls, architecture).values()):
            code += [*_equals(numbers, otherwise=1), _instruction(RETURN, action)]
    sockets = _socket_rules(network=network, unix_sockets=unix_sockets, loopback=loopback)
    rules = _rules(sockets, unix_sockets=unix_sockets, fake_metadata=fake_metadata, truncate=guard_truncate)
    for name, number in _numbers(" ".join((CHECKED, *NAMES_A_PROCESS.values(), *TIMES)), architecture).items():
        code += _checks(number, rules.get(name, ()))
    return b"".join((*code, _instruction(RETURN, ALLOW)))


def _rules(
    sockets: tuple[_Rule, ...], *, unix_sockets: bool, fake_metadata: bool, truncate: bool
) -> dict[str, tuple[_Rule, ...]]:
    """The calls that depend on their arguments, each with its rules; the first that fits decides."""
    requests = TERMINAL_INPUT + (READER_CHANGES if fake_metadata else ())
    rules = {
        "clone": (_Rule((_any_of(0, NEW_NAMESPACES),), REFUSE),),
        "ioctl": (_Rule((_Condition(1, requests),), REFUSE),),
        "socket": sockets,
        "socketpair": _pair_rules(unix_sockets=unix_sockets),
        "open": _open_rules(1, truncate=truncate),
        "openat": _open_rules(2, truncate=truncate),
        "creat": (_Rule((_any_of(1, SETUID_BITS),), REFUSE),),
        "mknod": (_Rule((_any_of(1, SETUID_BITS),), REFUSE),),
        "mknodat": (_Rule((_any_of(2, SETUID_BITS),), REFUSE),),
    }
    if not fake_metadata:
        modes = {"chmod": 1, "fchmod": 1, "fchmodat": 2}
        return rules | {name: (_Rule((_any_of(at, SETUID_BITS),), REFUSE),) for name, at in modes.items()}
    for argument, calls in NAMES_A_PROCESS.items():
        for call in calls.split():
            rules[call.partition("=")[0]] = (_Rule((_Condition(argument, (0,), is_other=True),), REFUSE),)
    for call, (path, times) in TIMES.items():
        is_now_by_name = (_Condition(path, (0,), is_other=True), _Condition(times, (0,)))
        rules[call.partition("=")[0]] = (_Rule(is_now_by_name, NOT_THERE), _Rule((), DONE))
    return rules


def _socket_rules(*, network: bool, unix_sockets: bool, loopback: bool) -> tuple[_Rule, ...]:
    """Which families there are. Of a network of one's own, TCP and UDP: other kinds only bring more of the kernel."""
    own = (UNIX,) if unix_sockets else ()
    internet = (INET, INET6, NETLINK) if network else (INET, INET6) if loopback else ()
    families = _Rule((_Condition(0, (*own, *internet), is_other=True),), NO_ACCESS)
    if network or not loopback:
        return (families,)
    is_internet = _Condition(0, (INET, INET6))
    kinds = _Condition(1, (STREAM, DATAGRAM), mask=SOCKET_TYPE, is_other=True)
    protocols = _Condition(2, TCP_AND_UDP, is_other=True)
    return (families, _Rule((is_internet, kinds), NO_ACCESS), _Rule((is_internet, protocols), NO_ACCESS))


def _pair_rules(*, unix_sockets: bool) -> tuple[_Rule, ...]:
    """A datagram socket of a pair can still send to any other by name, which a stream cannot."""
    strangers = _Rule((_Condition(0, (UNIX,), is_other=True),), NO_ACCESS)
    datagrams = _Rule((_Condition(1, (DATAGRAM, RAW), mask=SOCKET_TYPE),), NO_ACCESS)
    return (strangers,) if unix_sockets else (strangers, datagrams)


def _open_rules(flags: int, *, truncate: bool) -> tuple[_Rule, ...]:
    """A file may be born with setuid bits, too; and O_TRUNC empties a file even when it is opened to be read."""
    empties = _Condition(flags, (TRUNCATES, TRUNCATES | ACCESS_MODE), mask=TRUNCATES | ACCESS_MODE)
    elevates = _Rule((_any_of(flags, CREATES), _any_of(flags + 1, SETUID_BITS)), REFUSE)
    return (_Rule((empties,), NO_ACCESS), elevates) if truncate else (elevates,)


def _any_of(argument: int, bits: int) -> _Condition:
    return _Condition(argument, (0,), mask=bits, is_other=True)


def _numbers(calls: str, architecture: str) -> dict[str, int]:
    column = tuple(AUDIT_ARCHITECTURES).index(architecture)
    numbers = {}
    for call in calls.split():
        name, _, columns = call.partition("=")
        number = columns.split("/")[column if "/" in columns else 0]
        if number != "-":
            numbers[name] = int(number)
    return numbers


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _opening(architecture: str) -> list[bytes]:
    """Another architecture's numbers mean other calls; so do those of the x32 variant."""
    code = [
        _instruction(LOAD, ARCHITECTURE_OFFSET),
        _instruction(JUMP_IF_EQUAL, AUDIT_ARCHITECTURES[architecture], if_true=1),
        _instruction(RETURN, KILL),
        _instruction(LOAD, NUMBER_OFFSET),
    ]
    if architecture == "x86_64":
        code += [_instruction(JUMP_IF_AT_LEAST, X32_BIT, if_false=1), _instruction(RETURN, NO_SUCH_CALL)]
    return code


def _checks(number: int, rules: tuple[_Rule, ...]) -> list[bytes]:
    """The rules of one call; it is decided here, because the arguments overwrite its number."""
    if not rules:
        return []
    code = [each for rule in rules for each in _rule(rule)] + [_instruction(RETURN, ALLOW)]
    return [_instruction(JUMP_IF_EQUAL, number, if_false=len(code)), *code]


def _rule(rule: _Rule) -> list[bytes]:
    code = [_instruction(RETURN, rule.action)]
    for condition in reversed(rule.conditions):
        code = _condition(condition, otherwise=len(code)) + code
    return code


def _condition(condition: _Condition, *, otherwise: int) -> list[bytes]:
    """Falls through when it holds, else skips `otherwise` instructions."""
    # The kernel reads these arguments as 32 bits wide, so a set upper half must not make them look different.
    code = [_instruction(LOAD, 16 + 8 * condition.argument)]
    if condition.mask != EVERY_BIT:
        code.append(_instruction(AND, condition.mask))
    if condition.is_other:
        count = len(condition.values)
        skips = (count - 1 - at + otherwise for at in range(count))
        pairs = zip(condition.values, skips, strict=True)
        return code + [_instruction(JUMP_IF_EQUAL, value, if_true=skip) for value, skip in pairs]
    return code + _equals(condition.values, otherwise=otherwise)


def _equals(values: tuple[int, ...], *, otherwise: int) -> list[bytes]:
    """Falls through when the number at hand is one of `values`, else skips `otherwise` instructions."""
    last = len(values) - 1
    return [
        _instruction(JUMP_IF_EQUAL, value, if_true=last - at, if_false=otherwise if at == last else 0)
        for at, value in enumerate(values)
    ]
