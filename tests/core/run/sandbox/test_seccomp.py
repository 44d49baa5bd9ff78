"""The system call filter: every number, every argument that matters, by interpretation; then for real."""

from __future__ import annotations

import errno
import itertools
import json
import platform
import struct
import subprocess
import sys
from dataclasses import dataclass

import pytest

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.run.sandbox import seccomp

ALLOW, KILL = "allow", "kill"
X86_64, AARCH64, I386, ARM = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028
ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64}
SWITCHES = [
    dict(zip(("network", "unix_sockets", "fake_metadata", "guard_truncate"), values, strict=True))
    for values in itertools.product((False, True), repeat=4)
]
SWITCHES += [{**each, "loopback": True} for each in SWITCHES if not each["fake_metadata"]]

# Said once more, by number and independently of the module's own tables.
COMMON_REFUSED = {425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443, 467}
REFUSED = {
    "x86_64": COMMON_REFUSED
    | {101, 103, 153, 155, 159, 161, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 175, 176, 179, 180, 212}
    | {227, 246, 248, 249, 250, 256, 272, 279, 298, 303, 304, 305, 308, 310, 311, 312, 313, 320, 321, 323},
    "aarch64": COMMON_REFUSED
    | {18, 39, 40, 41, 42, 51, 58, 60, 89, 97, 104, 105, 106, 112, 116, 117, 142, 161, 162, 170, 171}
    | {217, 218, 219, 224, 225, 238, 239, 241, 264, 265, 266, 268, 270, 271, 272, 273, 280, 282, 294},
}
NO_SUCH_CALL = {435, 437, 452}
FAKED = {
    "x86_64": {90, 91, 92, 93, 94, 188, 189, 190, 197, 198, 199, 260, 268, 463, 466, 469},
    "aarch64": {5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 463, 466, 469},
}
TIMES_OF_PATH_AT = {"x86_64": {132: 0, 235: 0, 261: 1, 280: 1}, "aarch64": {88: 1}}
WATCHING = {"x86_64": {253, 254, 294, 300, 301}, "aarch64": {26, 27, 262, 263}}
ATTRIBUTES = {"x86_64": {*range(191, 197), 464, 465, 468}, "aarch64": {*range(8, 14), 464, 465, 468}}
SHARED_MEMORY = {
    "x86_64": {29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220, 240, 241},
    "aarch64": {180, 181, *range(186, 198)},
}
CHMOD_MODE_AT = {"x86_64": {90: 1, 91: 1, 268: 2}, "aarch64": {52: 1, 53: 2}}
CREATE_MODE_AT = {"x86_64": {85: 1, 133: 1, 259: 2}, "aarch64": {33: 2}}
OPEN_FLAGS_AT = {"x86_64": {2: 1, 257: 2}, "aarch64": {56: 2}}
PROCESS_AT = {
    "x86_64": {302: 0, 203: 0, 142: 0, 144: 0, 314: 0, 141: 1, 251: 1},
    "aarch64": {261: 0, 122: 0, 118: 0, 119: 0, 274: 0, 140: 1, 30: 1},
}
NAMES = {
    "x86_64": {"clone": 56, "ioctl": 16, "socket": 41, "socketpair": 53, "truncate": 76},
    "aarch64": {"clone": 220, "ioctl": 29, "socket": 198, "socketpair": 199, "truncate": 45},
}
HIGH = 0xDEADBEEF_00000000


def verdict(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> str:
    """What the kernel would answer: this is its interpreter, as far as the program uses it."""
    words = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *words)
    code = list(struct.iter_unpack("=HBBI", program))
    at, accumulator = 0, 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x15:
            at += if_true if accumulator == value else if_false
        elif operation == 0x35:
            at += if_true if accumulator >= value else if_false
        else:
            assert operation == 0x06
            return named(value)


def named(action: int) -> str:
    if action == 0x80000000:
        return KILL
    if action == 0x7FFF0000:
        return ALLOW
    assert action >> 16 == 5
    return errno.errorcode[action & 0xFFFF] if action & 0xFFFF else "done"


@dataclass(frozen=True)
class Rules:
    """The rules as sentences of code, to compare with."""

    name: str
    network: bool
    unix_sockets: bool
    fake_metadata: bool
    guard_truncate: bool
    loopback: bool = False

    def expected(self, number: int, arguments: tuple[int, ...]) -> str:
        low = [each & 0xFFFFFFFF for each in (*arguments, 0, 0, 0, 0, 0, 0)]
        if self.name == "x86_64" and number >= 0x40000000:
            return "ENOSYS"
        if number in NO_SUCH_CALL:
            return "ENOSYS"
        if number in REFUSED[self.name]:
            return "EPERM"
        return (
            self._without_namespaces(number) or self._by_file_arguments(number, low) or self._by_arguments(number, low)
        )

    def _without_namespaces(self, number: int) -> str:
        tables = {"done": FAKED, "EPERM": SHARED_MEMORY, "ENOSYS": WATCHING, errno.errorcode[95]: ATTRIBUTES}
        found = (answer for answer, table in tables.items() if number in table[self.name])
        return next(found, "") if self.fake_metadata else ""

    def _by_file_arguments(self, number: int, low: list[int]) -> str:
        if self.fake_metadata and number in TIMES_OF_PATH_AT[self.name]:
            path, times = low[TIMES_OF_PATH_AT[self.name][number] :][:2]
            return "ENOENT" if path and not times else "done"
        for table in (CHMOD_MODE_AT, CREATE_MODE_AT):
            if number in table[self.name]:
                return "EPERM" if low[table[self.name][number]] & 0o6000 else ALLOW
        if number == NAMES[self.name]["truncate"] and self.guard_truncate:
            return "EACCES"
        if number not in OPEN_FLAGS_AT[self.name]:
            return ""
        flags, mode = low[OPEN_FLAGS_AT[self.name][number] :][:2]
        if self.guard_truncate and flags & 0o1000 and flags & 3 in (0, 3):
            return "EACCES"
        return "EPERM" if flags & (0o100 | 0o20000000) and mode & 0o6000 else ALLOW

    def _by_arguments(self, number: int, low: list[int]) -> str:
        names = NAMES[self.name]
        if number == names["clone"]:
            return "EPERM" if low[0] & 0x7E020000 else ALLOW
        if number == names["ioctl"]:
            terminal = low[1] in (0x5412, 0x541C)
            return "EPERM" if terminal or (self.fake_metadata and low[1] in seccomp.READER_CHANGES) else ALLOW
        if number == names["socket"]:
            is_own = low[0] in (2, 10) and low[1] & 0xF in (1, 2) and low[2] in (0, 6, 17)
            is_allowed = (
                (self.unix_sockets and low[0] == 1)
                or (self.network and low[0] in (2, 10, 16))
                or (self.loopback and is_own)
            )
            return ALLOW if is_allowed else "EACCES"
        if number == names["socketpair"]:
            sends_anywhere = not self.unix_sockets and low[1] & 0xF in (2, 3)
            return "EACCES" if low[0] != 1 or sends_anywhere else ALLOW
        if self.fake_metadata and number in PROCESS_AT[self.name]:
            return "EPERM" if low[PROCESS_AT[self.name][number]] else ALLOW
        return ALLOW


def words_for(name: str, number: int) -> list[tuple[int, ...]]:
    """Argument lists worth trying with a call; each also with its upper half set."""
    names = NAMES[name]
    lists: list[tuple[int, ...]] = [(), (1, 1, 1, 1), (0o6755,) * 4, (0xFFFFFFFF,) * 6]
    if number == names["clone"]:
        lists += [(1 << bit,) for bit in range(32)] + [(0x11,), (0x3D0F00,)]
    elif number == names["ioctl"]:
        requests = (0x5401, 0x5411, 0x5412, 0x5413, 0x541C, 0x541B, *seccomp.READER_CHANGES, 0x40049409)
        lists += [(0, request) for request in requests]
    elif number in (names["socket"], names["socketpair"]):
        lists += [(family, kind) for family in range(64) for kind in (*range(8), 0x80001, 0x80002, 0x802, 0x803)]
    elif number in OPEN_FLAGS_AT[name]:
        flags = [*(1 << bit for bit in range(24)), *range(4), *(0o1000 | mode for mode in range(4)), 0o20200000, 0o102]
        pad = (0,) * OPEN_FLAGS_AT[name][number]
        lists += [(*pad, flag, mode) for flag in flags for mode in (0, 0o644, 0o2755, 0o4755, 0o6000, 0o1777)]
    elif number in CHMOD_MODE_AT[name] | CREATE_MODE_AT[name]:
        at = (CHMOD_MODE_AT[name] | CREATE_MODE_AT[name])[number]
        lists += [(0,) * at + (1 << bit,) for bit in range(16)]
    elif number in TIMES_OF_PATH_AT[name]:
        pad = (9,) * TIMES_OF_PATH_AT[name][number]
        lists += [(*pad, path, times, 0) for path in (0, 7) for times in (0, 7)]
    elif number in PROCESS_AT[name]:
        lists += [(0, 5), (5, 0), (0, 0, 7), (5, 5)]
    return lists + [tuple(HIGH | word for word in each) for each in lists]


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("switches", SWITCHES, ids=lambda each: "-".join(key for key in each if each[key]) or "none")
def test_every_call_gets_the_answer_of_the_rules(name: str, switches: dict[str, bool]) -> None:
    program = seccomp.program(architecture=name, **switches)
    rules = Rules(name, **switches)
    wrong = [
        (number, arguments, found, expected)
        for number in (*range(601), *range(0x40000000, 0x40000259), 0x3FFFFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
        for arguments in words_for(name, number)
        if (found := verdict(program, ARCHITECTURES[name], number, arguments))
        != (expected := rules.expected(number, arguments))
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("switches", [SWITCHES[0], SWITCHES[-1]], ids=("none", "all"))
def test_calls_of_another_architecture_end_the_process(name: str, switches: dict[str, bool]) -> None:
    program = seccomp.program(architecture=name, **switches)
    for foreign in {X86_64, AARCH64, I386, ARM, 0, 0xFFFFFFFF} - {ARCHITECTURES[name]}:
        assert {verdict(program, foreign, number) for number in (*range(601), 0x40000000)} == {KILL}


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(SandboxUnavailableError, match="no system call filter for 'riscv64', only for x86_64, aarch64"):
        seccomp.program(architecture="riscv64", network=False, unix_sockets=False)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_no_call_stands_in_two_tables(name: str) -> None:
    usual = (seccomp.REFUSED, seccomp.UNKNOWN, seccomp.CHECKED, seccomp.SHARED_MEMORY, seccomp.TRUNCATE)
    tables = (*usual, seccomp.WATCHING, seccomp.ATTRIBUTES)
    numbers = [number for table in tables for number in seccomp._numbers(table, name).values()]
    numbers += seccomp._numbers(" ".join(seccomp.NAMES_A_PROCESS.values()), name).values()
    assert len(numbers) == len(set(numbers))


def test_the_longest_program_is_far_below_the_kernels_limit() -> None:
    longest = max(len(seccomp.program(architecture=name, **each)) // 8 for name in ARCHITECTURES for each in SWITCHES)
    assert longest < 300  # of 4096


PROBE = """
import ctypes, errno, json, os, socket, sys, tempfile
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_char_p)]
folder = tempfile.mkdtemp(dir=sys.argv[1])
file = folder + "/file"
open(file, "w").write("content")
os.chmod(file, 0o600)
code = sys.stdin.buffer.read()
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(code) // 8, code)), 0, 0) == 0
found = {}
def probe(name, action):
    try:
        action()
    except OSError as error:
        found[name] = errno.errorcode[error.errno]
    else:
        found[name] = "done"
def call(number, *arguments):
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if libc.syscall(ctypes.c_long(number), *words) < 0:
        raise OSError(ctypes.get_errno(), "")
for name in ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET", "AF_ALG"):
    kind = socket.SOCK_RAW if name == "AF_NETLINK" else socket.SOCK_DGRAM
    probe(name, lambda: socket.socket(getattr(socket, name), kind).close())
probe("pair", lambda: socket.socketpair())
probe("datagram pair", lambda: socket.socketpair(type=socket.SOCK_DGRAM))
probe("io_uring", lambda: call(425, 1, ctypes.create_string_buffer(120)))
probe("clone3", lambda: call(435, 0, 0))
probe("openat2", lambda: call(437, 0, 0, 0, 0))
probe("quotactl_fd", lambda: call(443, 0, 0, 0, 0))
probe("open_tree_attr", lambda: call(467, 0, 0, 0, 0, 0))
probe("chmod", lambda: os.chmod(file, 0o640))
probe("chmod setuid", lambda: os.chmod(file, 0o4755))
probe("born setuid", lambda: os.close(os.open(folder + "/born", os.O_CREAT | os.O_WRONLY, 0o4755)))
probe("utime", lambda: os.utime(file, (1, 1)))
probe("now by name", lambda: os.utime(file))
probe("now by descriptor", lambda: os.utime(os.open(file, os.O_RDONLY)))
__import__("pathlib").Path(folder, "touched").touch()
found["touched"] = os.path.exists(folder + "/touched")
probe("truncate", lambda: os.truncate(file, 3))
probe("open to read and truncate", lambda: os.close(os.open(file, os.O_RDONLY | os.O_TRUNC)))
probe("prlimit of the parent", lambda: __import__("resource").prlimit(os.getppid(), 7))
probe("x32 getpid", lambda: call(0x40000000 + 39))
found["mode"], found["time"] = oct(os.stat(file).st_mode & 0o7777), os.stat(file).st_mtime == 1
found["fork"] = os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1]
print(json.dumps(found))
"""


def probed(folder: object, **switches: bool) -> dict[str, object]:
    ended = subprocess.run(
        [sys.executable, "-I", "-c", PROBE, str(folder)],
        input=seccomp.program(**switches),
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    found: dict[str, object] = json.loads(ended.stdout)
    return found


NEEDS_X86 = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the numbers in the probe are those of x86_64"
)
ALWAYS = {
    "AF_VSOCK": "EACCES",
    "AF_PACKET": "EACCES",
    "AF_ALG": "EACCES",
    "pair": "done",
    "io_uring": "EPERM",
    "clone3": "ENOSYS",
    "openat2": "ENOSYS",
    "quotactl_fd": "EPERM",
    "open_tree_attr": "EPERM",
    "born setuid": "EPERM",
    "x32 getpid": "ENOSYS",
    "fork": 0,
}


@NEEDS_X86
def test_the_filter_for_namespaces_works_in_the_kernel(tmp_path: object) -> None:
    found = probed(tmp_path, network=False, unix_sockets=True)
    assert found == ALWAYS | {
        "AF_UNIX": "done",
        "AF_INET": "EACCES",
        "AF_INET6": "EACCES",
        "AF_NETLINK": "EACCES",
        "datagram pair": "done",
        "chmod": "done",
        "chmod setuid": "EPERM",
        "utime": "done",
        "now by name": "done",
        "now by descriptor": "done",
        "touched": True,
        "truncate": "done",
        "open to read and truncate": "done",
        "prlimit of the parent": "done",
        "mode": "0o640",
        "time": False,
    }


@NEEDS_X86
def test_the_filter_without_namespaces_works_in_the_kernel(tmp_path: object) -> None:
    found = probed(tmp_path, network=True, unix_sockets=False, fake_metadata=True, guard_truncate=True)
    assert found == ALWAYS | {
        "AF_UNIX": "EACCES",
        "AF_INET": "done",
        "AF_INET6": "done",
        "AF_NETLINK": "done",
        "datagram pair": "EACCES",
        "chmod": "done",
        "chmod setuid": "done",
        "utime": "done",
        "now by name": "ENOENT",
        "now by descriptor": "done",
        "touched": True,
        "truncate": "EACCES",
        "open to read and truncate": "EACCES",
        "prlimit of the parent": "EPERM",
        "mode": "0o600",
        "time": False,
    }
