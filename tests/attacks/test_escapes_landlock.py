"""Escapes from the Landlock tier: each attack works without walls, and inside has no effect on the host."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import pty
import shutil
import socket
import subprocess
import sys
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.landlock_runs import IS_ROOT, NEEDS_LANDLOCK, NOBODY, PYTHON, Place, place

from skillkit.core.run.sandbox import landlock

pytestmark = [NEEDS_LANDLOCK, pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers are of x86_64")]

SECRET = "correct horse battery staple"
PRELUDE = """
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
outside, skill, work, *rest = sys.argv[1:]
print('attacking', flush=True)
"""


@dataclass
class Scene:
    """The host around one attack, and what of it can be seen to have changed."""

    here: Place
    stack: ExitStack
    arguments: list[str] = field(default_factory=list)
    output: str = ""
    victim: subprocess.Popen[str] | None = None
    received: Callable[[], bool] = lambda: False

    @property
    def secret(self) -> Path:
        return self.here.outside / "secret"

    @property
    def data(self) -> Path:
        return self.here.skill / "data"

    def leaked(self) -> bool:
        return SECRET in self.output

    def said_so(self) -> bool:
        """For attacks whose effect is a thing the script then holds."""
        return "GOT" in self.output


def nothing(_: Scene) -> None:
    pass


@dataclass(frozen=True)
class Attack:
    """A script, what it needs on the host, and how to see there that it worked."""

    name: str
    script: str
    worked: Callable[[Scene], bool]
    prepare: Callable[[Scene], None] = nothing
    may_be_impossible: bool = False
    """The system forbids it to ordinary users in some configurations: then there is nothing to guard."""


def start_victim(scene: Scene) -> None:
    """Another process of the same user, with a secret in its memory, its environment and an open file."""
    code = (
        "import ctypes, sys, time\n"
        "kept = ctypes.create_string_buffer(sys.stdin.readline().strip().encode())\n"
        "file = open(sys.argv[1])\n"
        "print(ctypes.addressof(kept), file.fileno(), flush=True)\n"
        "time.sleep(300)\n"
    )
    user = scene.here.user
    victim = subprocess.Popen(
        [PYTHON, "-I", "-c", code, str(scene.secret)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"HIDDEN": SECRET},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    scene.stack.enter_context(victim)
    scene.stack.callback(victim.kill)
    assert victim.stdin is not None
    assert victim.stdout is not None
    victim.stdin.write(SECRET + "\n")
    victim.stdin.flush()
    scene.victim = victim
    scene.arguments = [str(victim.pid), *victim.stdout.readline().split()]


def start_naming(scene: Scene) -> None:
    """Somebody else makes a file outside, again and again, whose name nobody could guess."""
    made = scene.here.outside / SECRET
    code = (
        "import os, sys, time\nwhile True:\n open(sys.argv[1], 'w').close(); os.remove(sys.argv[1]); time.sleep(0.05)\n"
    )
    process = subprocess.Popen([PYTHON, "-I", "-c", code, str(made)])
    scene.stack.enter_context(process)
    scene.stack.callback(process.kill)


def attach_note(scene: Scene) -> None:
    with suppress(OSError):  # not every file system has attributes
        os.setxattr(scene.secret, "user.note", SECRET.encode())


def victim_of(scene: Scene) -> subprocess.Popen[str]:
    assert scene.victim is not None
    return scene.victim


def is_dead(scene: Scene) -> bool:
    with suppress(subprocess.TimeoutExpired):
        victim_of(scene).wait(timeout=0.5)
    return victim_of(scene).poll() is not None


def processor_limit(pid: int) -> str:
    (line,) = [each for each in Path(f"/proc/{pid}/limits").read_text().splitlines() if each.startswith("Max cpu")]
    return line.split()[3]


def serve(family: int, kind: int, address: Callable[[Scene], object]) -> Callable[[Scene], None]:
    def prepare(scene: Scene) -> None:
        server = scene.stack.enter_context(socket.socket(family, kind))
        server.bind(address(scene))  # type: ignore[arg-type]  # each family has its own kind of address
        if family == socket.AF_UNIX and isinstance(server.getsockname(), str):
            Path(server.getsockname()).chmod(0o777)
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.settimeout(0.5)
        name = server.getsockname()
        scene.arguments = [str(name[1]) if family != socket.AF_UNIX else str(address(scene))]

        def received() -> bool:
            try:
                if kind == socket.SOCK_DGRAM:
                    return server.recv(10) == b"hello"
                with server.accept()[0] as connection:
                    return connection.recv(10) == b"hello"
            except (TimeoutError, ConnectionError):
                return False

        scene.received = received

    return prepare


def unix_path(scene: Scene) -> str:
    return f"{scene.here.outside}/socket"


def abstract(scene: Scene) -> str:
    return f"\0{scene.here.root.name}"


def serve_abstract(scene: Scene) -> None:
    serve(socket.AF_UNIX, socket.SOCK_STREAM, abstract)(scene)
    scene.arguments = []  # no argument can hold the zero byte of its name


def make_segment(scene: Scene) -> None:
    """System V shared memory of the user's, as another program would have it."""
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(0, 4096, 0o1666)
    address = libc.shmat(number, None, 0)
    ctypes.memmove(address, SECRET.encode(), len(SECRET))
    scene.stack.callback(libc.shmctl, number, 0, None)
    scene.stack.callback(libc.shmdt, ctypes.c_void_p(address))
    scene.arguments = [str(number)]


def make_shm_file(scene: Scene) -> None:
    path = Path("/dev/shm") / scene.here.root.name
    path.write_text(SECRET)
    path.chmod(0o644)
    scene.stack.callback(path.unlink)
    scene.arguments = [str(path)]


def make_setuid_program(scene: Scene) -> None:
    if not IS_ROOT:
        pytest.skip("only root can prepare a program that makes root")
    program = scene.here.skill / "id"
    shutil.copy("/usr/bin/id", program)
    program.chmod(0o4755)


def mode_changed(scene: Scene) -> bool:
    return scene.secret.stat().st_mode & 0o777 != 0o644


def data_changed(scene: Scene) -> bool:
    return scene.data.read_text() != f"{SECRET}\n"


def secret_changed(scene: Scene) -> bool:
    return not scene.secret.exists() or scene.secret.read_text() != f"{SECRET}\n"


def is_old(path: Callable[[Scene], Path]) -> Callable[[Scene], bool]:
    return lambda scene: path(scene).stat().st_mtime < 1000


def has_attribute(scene: Scene) -> bool:
    return any("user.mark" in os.listxattr(path) for path in (scene.secret, scene.data))


def outside_has_new(scene: Scene) -> bool:
    return sorted(os.listdir(scene.here.outside)) not in (["secret"], ["secret", "socket"])


def has_setuid_file(scene: Scene) -> bool:
    return any(path.stat().st_mode & 0o6000 for path in scene.here.work.iterdir() if not path.is_symlink())


CONNECT = "s = socket.socket({}); s.connect({}); s.sendall(b'hello')"
FILES = [
    Attack("read a key", "print(open(outside + '/secret').read())", Scene.leaked),
    Attack("list the home folder", "print('GOT' if os.listdir(outside) else '')", Scene.said_so),
    Attack("read through dots", "print(open(skill + '/../outside/secret').read())", Scene.leaked),
    Attack(
        "read through a link of one's own",
        "os.symlink(outside, work + '/link'); print(open(work + '/link/secret').read())",
        Scene.leaked,
    ),
    Attack("read through a link of proc", "print(open('/proc/self/root' + outside + '/secret').read())", Scene.leaked),
    Attack(
        "read by a hard link",
        "os.link(outside + '/secret', work + '/link'); print(open(work + '/link').read())",
        Scene.leaked,
    ),
    Attack("write outside", "open(outside + '/secret', 'a').write('more')", secret_changed),
    Attack("make a file outside", "open(outside + '/new', 'w')", outside_has_new),
    Attack("make a link outside", "os.symlink('x', outside + '/new')", outside_has_new),
    Attack("remove a file outside", "os.unlink(outside + '/secret')", secret_changed),
    Attack("move a file in", "os.rename(outside + '/secret', work + '/secret')", secret_changed),
    Attack("move a file out", "open(work + '/f', 'w'); os.rename(work + '/f', outside + '/new')", outside_has_new),
    Attack("truncate outside", "os.truncate(outside + '/secret', 0)", secret_changed),
    Attack("empty while reading", "os.open(outside + '/secret', os.O_RDONLY | os.O_TRUNC)", secret_changed),
    Attack("empty without access", "os.open(outside + '/secret', 3 | os.O_TRUNC)", secret_changed),
    Attack("write a skill file", "open(skill + '/data', 'a').write('more')", data_changed),
    Attack("replace a skill file", "open(work + '/f', 'w'); os.rename(work + '/f', skill + '/data')", data_changed),
    Attack(
        "write a skill file by a hard link",
        "os.link(skill + '/data', work + '/link'); open(work + '/link', 'a').write('more')",
        data_changed,
    ),
    Attack("empty a skill file", "os.open(skill + '/data', os.O_RDONLY | os.O_TRUNC)", data_changed),
]
METADATA = [
    Attack("change a mode", "os.chmod(outside + '/secret', 0o666)", mode_changed),
    Attack(
        "change a mode by number 452",
        "call(452, -100, ctypes.c_char_p((outside + '/secret').encode()), 0o666, 0)",
        mode_changed,
    ),
    Attack(
        "change a skill file's mode by descriptor",
        "os.fchmod(os.open(skill + '/data', os.O_RDONLY), 0o666)",
        lambda scene: scene.data.stat().st_mode & 0o777 != 0o644,
    ),
    Attack("change times", "os.utime(outside + '/secret', (1, 1))", is_old(lambda scene: scene.secret)),
    Attack(
        "change a skill file's times by descriptor",
        "os.utime(os.open(skill + '/data', os.O_RDONLY), (1, 1))",
        is_old(lambda scene: scene.data),
    ),
    Attack(
        "set an attribute", "os.setxattr(outside + '/secret', 'user.mark', b'x')", has_attribute, may_be_impossible=True
    ),
    Attack(
        "set an attribute by descriptor",
        "os.setxattr(os.open(skill + '/data', os.O_RDONLY), 'user.mark', b'x')",
        has_attribute,
        may_be_impossible=True,
    ),
    Attack(
        "set an attribute by number 463",
        "value = ctypes.create_string_buffer(b'x'); args = struct.pack('=QII', ctypes.addressof(value), 1, 0)\n"
        "call(463, -100, ctypes.c_char_p((outside + '/secret').encode()), 0, ctypes.c_char_p(b'user.mark'),"
        " ctypes.c_char_p(args), 16)",
        has_attribute,
        may_be_impossible=True,
    ),
    Attack(
        "set flags of a skill file by ioctl",
        "import fcntl; fcntl.ioctl(os.open(skill + '/data', os.O_RDONLY), 0x40086602, struct.pack('=q', 0x80))",
        lambda scene: flags_of(scene.data) & 0x80 != 0,
        may_be_impossible=True,
    ),
    Attack("make a setuid file", "open(work + '/f', 'w'); os.chmod(work + '/f', 0o4755)", has_setuid_file),
    Attack(
        "make a file that is born setuid", "os.open(work + '/f', os.O_CREAT | os.O_WRONLY, 0o4755)", has_setuid_file
    ),
    Attack("make a setuid node", "os.mknod(work + '/f', 0o104755)", has_setuid_file),
]
NETWORK = [
    Attack(
        "TCP",
        CONNECT.format("", "('127.0.0.1', int(rest[0]))"),
        lambda scene: scene.received(),
        serve(socket.AF_INET, socket.SOCK_STREAM, lambda _: ("127.0.0.1", 0)),
    ),
    Attack(
        "TCP of version 6",
        CONNECT.format("socket.AF_INET6", "('::1', int(rest[0]))"),
        lambda scene: scene.received(),
        serve(socket.AF_INET6, socket.SOCK_STREAM, lambda _: ("::1", 0)),
    ),
    Attack(
        "UDP",
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'hello', ('127.0.0.1', int(rest[0])))",
        lambda scene: scene.received(),
        serve(socket.AF_INET, socket.SOCK_DGRAM, lambda _: ("127.0.0.1", 0)),
    ),
    Attack(
        "a unix socket by path",
        CONNECT.format("socket.AF_UNIX", "rest[0]"),
        lambda scene: scene.received(),
        serve(socket.AF_UNIX, socket.SOCK_STREAM, unix_path),
    ),
    Attack(
        "an abstract unix socket",
        CONNECT.format("socket.AF_UNIX", "'\\0' + os.path.basename(os.path.dirname(work))"),
        lambda scene: scene.received(),
        serve_abstract,
    ),
    Attack(
        "a unix socket by one of a pair",
        "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'hello', rest[0])",
        lambda scene: scene.received(),
        serve(socket.AF_UNIX, socket.SOCK_DGRAM, unix_path),
    ),
    Attack("vsock", "socket.socket(40, 1); print('GOT')", Scene.said_so, may_be_impossible=True),
    Attack("kernel cryptography", "socket.socket(38, 5); print('GOT')", Scene.said_so, may_be_impossible=True),
    Attack(
        "a socket by 32-bit call",
        # mov eax,359; mov ebx,2; mov ecx,1; xor edx,edx; int 0x80; ret (rbx saved around it)
        "import mmap\ncode = bytes.fromhex('53b867010000bb02000000b90100000031d2cd805bc3')\n"
        "page = mmap.mmap(-1, 4096, prot=7)\npage.write(code)\n"
        "entry = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
        "print('GOT' if entry() >= 0 else '')",
        Scene.said_so,
        may_be_impossible=True,
    ),
    Attack(
        "io_uring",
        "print('GOT', call(425, 1, ctypes.create_string_buffer(120)))",
        Scene.said_so,
        may_be_impossible=True,
    ),
]
PROCESSES = [
    Attack("kill another process", "os.kill(int(rest[0]), 9)", is_dead, start_victim),
    Attack(
        "kill by pidfd",
        "import signal; signal.pidfd_send_signal(os.pidfd_open(int(rest[0])), 9)",
        is_dead,
        start_victim,
    ),
    Attack(
        "kill by a limit of processor time",
        "import resource; resource.prlimit(int(rest[0]), resource.RLIMIT_CPU, (1, 1))",
        lambda scene: processor_limit(victim_of(scene).pid) == "1",
        start_victim,
    ),
    Attack(
        "slow another process down",
        "os.setpriority(os.PRIO_PROCESS, int(rest[0]), 19)",
        lambda scene: os.getpriority(os.PRIO_PROCESS, victim_of(scene).pid) == 19,
        start_victim,
    ),
    Attack(
        "bind another process to a processor",
        "os.sched_setaffinity(int(rest[0]), {min(os.sched_getaffinity(0))})",
        lambda scene: len(os.sched_getaffinity(victim_of(scene).pid)) < len(os.sched_getaffinity(0)),
        start_victim,
        may_be_impossible=len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else True,
    ),
    Attack(
        "read another's memory",
        "kept = ctypes.create_string_buffer(64)\n"
        "mine = struct.pack('=QQ', ctypes.addressof(kept), 28)\ntheirs = struct.pack('=QQ', int(rest[1]), 28)\n"
        "call(310, int(rest[0]), ctypes.c_char_p(mine), 1, ctypes.c_char_p(theirs), 1, 0)\nprint(kept.value.decode())",
        Scene.leaked,
        start_victim,
        may_be_impossible=True,
    ),
    Attack(
        "read another's memory through proc",
        "f = open(f'/proc/{rest[0]}/mem', 'rb', 0); f.seek(int(rest[1])); print(f.read(28).decode())",
        Scene.leaked,
        start_victim,
        may_be_impossible=True,
    ),
    Attack(
        "trace another process",
        "call(101, 16, int(rest[0]), 0, 0); print('GOT')",
        Scene.said_so,
        start_victim,
        may_be_impossible=True,
    ),
    Attack(
        "take another's descriptor",
        "print(os.pread(call(438, os.pidfd_open(int(rest[0])), int(rest[2]), 0), 99, 0).decode())",
        Scene.leaked,
        start_victim,
        may_be_impossible=True,
    ),
    Attack("read another's environment", "print(open(f'/proc/{rest[0]}/environ').read())", Scene.leaked, start_victim),
    Attack(
        "read through another's root",
        "print(open(f'/proc/{rest[0]}/root{outside}/secret').read())",
        Scene.leaked,
        start_victim,
    ),
    Attack(
        "read another's open file", "print(open(f'/proc/{rest[0]}/fd/{rest[2]}').read())", Scene.leaked, start_victim
    ),
    Attack("read shared memory", "print(open(rest[0]).read())", Scene.leaked, make_shm_file),
    Attack(
        "read a shared segment",
        "libc.shmat.restype = ctypes.c_void_p; at = libc.shmat(int(rest[0]), None, 0o10000)\n"
        "print(ctypes.string_at(at, 28).decode())",
        Scene.leaked,
        make_segment,
    ),
]
KERNEL = [
    Attack(
        "run a setuid program",
        "os.execv(skill + '/id', ['id', '-u'])",
        lambda scene: scene.output.split() == ["attacking", "0"],
        make_setuid_program,
    ),
    Attack("make a user namespace", "call(272, 0x10000000); print('GOT')", Scene.said_so, may_be_impossible=True),
    Attack(
        "make a user namespace by clone",
        "pid = call(56, 0x10000011, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\nprint('GOT')",
        Scene.said_so,
        may_be_impossible=True,
    ),
    Attack(
        "call the kernel by the numbers of x32",
        "print('GOT', call(0x40000000 + 39))",
        Scene.said_so,
        may_be_impossible=True,
    ),
    Attack(
        "keep a key in the kernel",
        "name = ctypes.c_char_p(b'x'); print('GOT', call(248, ctypes.c_char_p(b'user'), name, name, 1, -3))",
        Scene.said_so,
        may_be_impossible=True,
    ),
    Attack(
        "watch with perf",
        "attributes = struct.pack('=II', 1, 64) + bytes(32) + struct.pack('=Q', 0x61) + bytes(16)\n"
        "print('GOT', call(298, ctypes.c_char_p(attributes), 0, -1, -1, 0))",
        Scene.said_so,
        may_be_impossible=True,
    ),
    Attack(
        "handle page faults",
        "print('GOT', call(323, 1))",
        Scene.said_so,
        may_be_impossible=True,
    ),
    Attack(
        "open a file by handle",
        "handle = ctypes.create_string_buffer(struct.pack('=II', 128, 0) + bytes(128))\n"
        "call(303, -100, ctypes.c_char_p((outside + '/secret').encode()), handle, ctypes.create_string_buffer(8), 0)\n"
        "print('GOT')",
        Scene.said_so,
        may_be_impossible=True,
    ),
]
KNOWING = [
    Attack(
        "watch names appear in a folder",
        "import select\nwatch = call(294, 0)\n"
        "call(254, watch, ctypes.c_char_p(outside.encode()), 0x100)\n"
        "select.select([watch], [], [], 10)\nprint(os.read(watch, 4096).decode(errors='replace'))",
        Scene.leaked,
        start_naming,
    ),
    Attack(
        "watch a folder with fanotify",
        "watch = call(300, 0x200 | 0xc00, 0)\n"
        "call(301, watch, 1, 0x100 | 0x40000000, -100, ctypes.c_char_p(outside.encode()))\nprint('GOT')",
        Scene.said_so,
        may_be_impossible=True,
    ),
    Attack(
        "read an attribute",
        "print(os.getxattr(outside + '/secret', 'user.note').decode())",
        Scene.leaked,
        attach_note,
        may_be_impossible=True,
    ),
    Attack(
        "list attributes of the file that a link is",
        "print('GOT' if os.listxattr(outside + '/secret', follow_symlinks=False) else '')",
        Scene.said_so,
        attach_note,
        may_be_impossible=True,
    ),
    Attack(
        "read an attribute by the newer call",
        "buffer = ctypes.create_string_buffer(100)\n"
        "arguments = struct.pack('=QII', ctypes.addressof(buffer), 100, 0)\n"
        "text = ctypes.c_char_p\n"
        "call(464, -100, text((outside + '/secret').encode()), 0, text(b'user.note'), text(arguments), 16)\n"
        "print(buffer.value.decode())",
        Scene.leaked,
        attach_note,
        may_be_impossible=True,
    ),
]
ATTACKS = [*KNOWING, *FILES, *METADATA, *NETWORK, *PROCESSES, *KERNEL]


def flags_of(path: Path) -> int:
    number = os.open(path, os.O_RDONLY)
    try:
        return int.from_bytes(fcntl.ioctl(number, 0x80086601, bytes(8))[:4], sys.byteorder)
    except OSError:
        return 0
    finally:
        os.close(number)


@contextmanager
def scene_for(attack: Attack, user: int | None) -> Iterator[Scene]:
    with ExitStack() as stack:
        scene = Scene(stack.enter_context(place(user=user)), stack)
        for path in ("outside/secret", "skill/data"):
            scene.here.file(path, f"{SECRET}\n")
        attack.prepare(scene)
        yield scene


def command(attack: Attack, scene: Scene) -> tuple[str, ...]:
    folders = (str(scene.here.outside), str(scene.here.skill), str(scene.here.work))
    return (PYTHON, "-I", "-c", PRELUDE + attack.script, *folders, *scene.arguments)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_without_walls_it_works(attack: Attack) -> None:
    """As an ordinary user, never as root: an attack that cannot work proves nothing when it fails inside."""
    with scene_for(attack, NOBODY if IS_ROOT else None) as scene:
        ended = scene.here.run_bare(*command(attack, scene))
        scene.output = ended.stdout
        worked = attack.worked(scene)
    if not worked and attack.may_be_impossible:
        pytest.skip(f"this system does not let an ordinary user {attack.name}: {ended.stderr[-200:]}")
    assert worked, ended.stderr


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
@pytest.mark.parametrize("user", [NOBODY, None] if IS_ROOT else [None], ids=["user", "root"][: 1 + IS_ROOT])
def test_inside_it_has_no_effect(attack: Attack, user: int | None) -> None:
    if user is None and IS_ROOT and attack.prepare is make_setuid_program:
        pytest.skip("root needs no program to become root")
    with scene_for(attack, user) as scene:
        ended = scene.here.run(*command(attack, scene))
        scene.output = ended.stdout
        worked = attack.worked(scene)
    assert not worked, (ended.stdout, ended.stderr)
    assert ended.stdout.startswith("attacking"), ended.stderr


ONE_BARRIER_LESS = [
    each for each in NETWORK if each.name in ("TCP", "TCP of version 6", "UDP", "a unix socket by path")
]


@pytest.mark.parametrize("attack", ONE_BARRIER_LESS, ids=lambda attack: attack.name)
@pytest.mark.parametrize("version", [each for each in (1, 3, 5) if each <= landlock.abi()])
def test_on_an_older_kernel_the_network_is_closed_all_the_same(attack: Attack, version: int) -> None:
    with scene_for(attack, NOBODY if IS_ROOT else None) as scene:
        scene.here.run(*command(attack, scene), version=version)
        assert not attack.worked(scene)


@pytest.mark.slow
def test_with_network_the_internet_is_open_and_unix_sockets_are_not() -> None:
    reached = {}
    for attack in NETWORK[:6]:
        with scene_for(attack, NOBODY if IS_ROOT else None) as scene:
            scene.here.run(*command(attack, scene), network=True)
            reached[attack.name] = attack.worked(scene)
    assert [name for name, was_reached in reached.items() if was_reached] == ["TCP", "TCP of version 6", "UDP"]


ROOT_ONLY = {
    "read the passwords of the system": "print('GOT' if open('/etc/shadow').read() else '')",
    "name a program for crashes": "os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY); print('GOT')",
    "trigger the kernel": "os.open('/proc/sysrq-trigger', os.O_WRONLY); print('GOT')",
    "make a device": "os.mknod(work + '/null', 0o20666, os.makedev(1, 3)); print('GOT')",
    "make a device of a disk": "os.mknod(work + '/disk', 0o60666, os.makedev(7, 0)); print('GOT')",
    "mount": "text = ctypes.c_char_p; call(165, 0, text(work.encode()), text(b'tmpfs'), 0, 0); print('GOT')",
    "change the root": "os.chroot(work); print('GOT')",
    "name the machine": "call(170, ctypes.c_char_p(b'skill'), 0); print('GOT')",
    "load a program into the kernel": "call(321, 0, ctypes.create_string_buffer(128), 128); print('GOT')",
    "become another user": "os.setuid(1); print('GOT')",
    "open a raw socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('GOT')",
    "read another user's file": "print('GOT' if open(rest[0]).read() else '')",
}


@pytest.mark.skipif(not IS_ROOT, reason="only root could do this without walls")
@pytest.mark.parametrize("name", ROOT_ONLY)
def test_root_inside_can_do_no_more_than_a_user(name: str) -> None:
    with place(user=None) as here:
        theirs = here.file("skill/theirs", SECRET, mode=0o600)
        os.chown(theirs, NOBODY, NOBODY)
        folders = (str(here.outside), str(here.skill), str(here.work), str(theirs))
        ended = here.run(PYTHON, "-I", "-c", PRELUDE + ROOT_ONLY[name], *folders, network=True)
    assert "GOT" not in ended.stdout
    assert "Error" in ended.stderr


PUSH = "import fcntl, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\nfcntl.ioctl(0, termios.TIOCSTI, b'x')\n"


def pushes(*, inside: bool) -> bool:
    """Whether a script that was given a terminal can type into it."""
    switch = Path("/proc/sys/dev/tty/legacy_tiocsti")
    if switch.exists() and switch.read_text().strip() == "0":
        pytest.skip("this kernel lets nobody type into terminals")
    master, slave = pty.openpty()
    try:
        os.set_blocking(slave, False)
        tty.setraw(slave)
        os.chmod(os.ttyname(slave), 0o666)
        with place(user=NOBODY if IS_ROOT else None) as here:
            argv = (PYTHON, "-I", "-c", PUSH)
            if inside:
                with here.started(here.confined(argv), stdin=slave) as process:
                    process.communicate(timeout=60)
            else:
                here.run_bare(*argv, stdin=slave)
        with suppress(BlockingIOError):
            return os.read(slave, 1) == b"x"
        return False
    finally:
        os.close(master)
        with suppress(OSError):
            os.close(slave)


def test_without_walls_a_script_can_type_into_a_terminal() -> None:
    assert pushes(inside=False)


def test_inside_a_script_cannot_type_into_a_terminal() -> None:
    assert not pushes(inside=True)


def test_what_stays_visible_is_what_the_report_says() -> None:
    """These two cannot be closed without namespaces; should a kernel close them, the report is to be changed."""
    attack = Attack(
        "",
        "print(os.stat(outside + '/secret').st_size, open(f'/proc/{rest[0]}/cmdline').read())",
        Scene.leaked,
        start_victim,
    )
    with scene_for(attack, NOBODY if IS_ROOT else None) as scene:
        ended = scene.here.run(*command(attack, scene))
        isolation = scene.here.confined(("/bin/true",)).isolation
    assert ended.stdout.startswith(f"attacking\n{len(SECRET) + 1} ")
    assert str(scene.secret) in ended.stdout
    assert isolation.degraded[:2] == (
        "command lines of other processes are visible",
        "names, sizes, times and link targets of files outside are visible",
    )


def test_a_process_under_attack_is_really_there() -> None:
    """The victim lives through every attack from inside; it must not have died by itself."""
    attack = Attack("", "", Scene.leaked, start_victim)
    with scene_for(attack, NOBODY if IS_ROOT else None) as scene:
        time.sleep(0.2)
        assert victim_of(scene).poll() is None
