"""Attacks from inside the bubblewrap walls: the host must not change, and each works without the walls."""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.confined_runs import ENVIRONMENT, Room, bubblewrap_refusal, open_folder, users

pytestmark = pytest.mark.skipif(bool(bubblewrap_refusal()), reason=f"no bubblewrap here: {bubblewrap_refusal()}")

PYTHON = "/usr/bin/python3"
SECRET = "the-secret-of-the-host"
# What every attack starts with: where things are, and `loot`, through which it shows what it got.
PREAMBLE = """
import ctypes, os, socket, struct, subprocess, sys, time
print("attacking", flush=True)
ROOM, ARGUMENT = sys.argv[1], sys.argv[2]
OUTSIDE, SKILL, WORK = ROOM + "/outside", ROOM + "/skill", ROOM + "/work"
libc = ctypes.CDLL(None, use_errno=True)
def loot(value):
    with open(WORK + "/loot", "a") as file:
        file.write(str(value))
"""


@dataclass(frozen=True, slots=True)
class Attack:
    script: str
    """Python, after the preamble."""
    effect: Callable[[Room], bool]
    """Whether it worked, seen from the host."""
    target: Callable[[Room], Any] = lambda _: nullcontext("")
    """What it aims at while it runs; gives the script's argument."""


def took_secret(room: Room) -> bool:
    loot = room.work / "loot"
    return loot.exists() and SECRET in loot.read_text()


def took_something(room: Room) -> bool:
    return (room.work / "loot").exists()


def secret_is_gone(room: Room) -> bool:
    secret = room.outside / "secret"
    return not secret.exists() or secret.read_text() != SECRET


def outside_has_company(room: Room) -> bool:
    return sorted(os.listdir(room.outside)) != ["secret"]


def secret_looks_different(room: Room) -> bool:
    seen = os.stat(room.outside / "secret")
    return stat.S_IMODE(seen.st_mode) != 0o600 or seen.st_mtime == 1.0 or bool(os.listxattr(room.outside / "secret"))


def skill_differs(room: Room) -> bool:
    helper = room.skill / "helper.txt"
    names = sorted(os.listdir(room.skill))
    if names != ["attack.py", "helper.txt"]:
        return True
    return helper.read_text() != "helper" or stat.S_IMODE(helper.stat().st_mode) != 0o644


@contextmanager
def listening(family: int, kind: int, address: Any) -> Iterator[str]:
    """A server that says the secret to whoever comes; its port or name."""
    with socket.socket(family, kind) as server:
        server.bind(address)
        server.settimeout(0.1)
        if kind == socket.SOCK_STREAM:
            server.listen()
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                try:
                    if kind == socket.SOCK_STREAM:
                        with server.accept()[0] as client:
                            client.sendall(SECRET.encode())
                    else:
                        server.sendto(SECRET.encode(), server.recvfrom(100)[1])
                except TimeoutError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            name = server.getsockname()
            yield str(name[1]) if family in (socket.AF_INET, socket.AF_INET6) else str(address).replace("\0", "@")
        finally:
            stop.set()
            thread.join()


@contextmanager
def socket_outside(room: Room) -> Iterator[str]:
    path = str(room.outside / "s")
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, path) as name:
        os.chmod(path, 0o777)
        yield name
    os.unlink(path)


@contextmanager
def victim(room: Room) -> Iterator[str]:
    """Of the same user, with a secret in its memory, environment and command line."""
    program = "import time, sys; secret = sys.argv[1].encode() * 1; print(id(secret), flush=True); time.sleep(100)"
    process = subprocess.Popen(
        [sys.executable if room.user is None else PYTHON, "-c", program, SECRET],
        env={"VICTIM": SECRET, "PATH": ENVIRONMENT["PATH"]},
        stdout=subprocess.PIPE,
        text=True,
        cwd=room.outside,
        user=room.user,
        group=room.user,
        extra_groups=None if room.user is None else [],
    )
    assert process.stdout
    try:
        yield f"{process.pid}:{process.stdout.readline().strip()}"
        if process.poll() is not None:
            (room.outside / "victim-died").touch()
    finally:
        process.kill()
        process.communicate()


@contextmanager
def shared_memory(_: Room) -> Iterator[str]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(0x5EC0 + os.getpid(), 4096, 0o1666)
    address = libc.shmat(number, None, 0)
    ctypes.memmove(address, SECRET.encode(), len(SECRET))
    try:
        yield str(0x5EC0 + os.getpid())
    finally:
        libc.shmdt(ctypes.c_void_p(address))
        libc.shmctl(number, 0, None)


@contextmanager
def shared_file(room: Room) -> Iterator[str]:
    path = Path(f"/dev/shm/skillkit-{os.getpid()}-{room.root.name}")
    path.write_text(SECRET)
    path.chmod(0o666)
    try:
        yield path.name
    finally:
        path.unlink()


def tcp(family: int, address: str) -> Callable[[Room], Any]:
    return lambda _: listening(family, socket.SOCK_STREAM, (address, 0))


CONNECT = "s = socket.socket({family}, {kind}); s.settimeout(2); s.connect({to}); {say}loot(s.recv(100))"
ATTACKS = {
    "read_a_private_file": Attack("loot(open(OUTSIDE + '/secret').read())", took_secret),
    "list_a_folder_outside": Attack("loot(os.listdir(OUTSIDE))", took_something),
    "traverse_upwards": Attack("loot(open(SKILL + '/../outside/secret').read())", took_secret),
    "follow_a_link_made_in_the_work_folder": Attack(
        "os.symlink(OUTSIDE + '/secret', WORK + '/link'); loot(open(WORK + '/link').read())", took_secret
    ),
    "see_that_a_file_exists": Attack("loot(os.stat(OUTSIDE + '/secret').st_size)", took_something),
    "reach_out_through_the_root_of_a_process": Attack(
        """
for pid in (1, os.getppid(), os.getpid()):
    try: loot(open(f'/proc/{pid}/root{OUTSIDE}/secret').read())
    except OSError: pass
""",
        took_secret,
    ),
    "write_a_file_outside": Attack("open(OUTSIDE + '/new', 'w').write('x')", outside_has_company),
    "append_to_a_file_outside": Attack("open(OUTSIDE + '/secret', 'a').write('x')", secret_is_gone),
    "truncate_a_file_outside": Attack("os.truncate(OUTSIDE + '/secret', 0)", secret_is_gone),
    "remove_a_file_outside": Attack("os.unlink(OUTSIDE + '/secret')", secret_is_gone),
    "rename_a_file_outside": Attack("os.rename(OUTSIDE + '/secret', OUTSIDE + '/other')", secret_is_gone),
    "move_the_folder_outside": Attack(
        "os.rename(OUTSIDE, ROOM + '/elsewhere')", lambda room: not room.outside.exists()
    ),
    "change_a_mode_outside": Attack("os.chmod(OUTSIDE + '/secret', 0o777)", secret_looks_different),
    "change_times_outside": Attack("os.utime(OUTSIDE + '/secret', (1, 1))", secret_looks_different),
    "change_attributes_outside": Attack("os.setxattr(OUTSIDE + '/secret', 'user.x', b'1')", secret_looks_different),
    "hard_link_a_file_outside": Attack(
        "os.link(OUTSIDE + '/secret', WORK + '/linked'); loot(open(WORK + '/linked').read())", took_secret
    ),
    "write_a_skill_file": Attack("open(SKILL + '/helper.txt', 'w').write('evil')", skill_differs),
    "replace_a_skill_file": Attack(
        "open(WORK + '/evil', 'w').write('evil'); os.replace(WORK + '/evil', SKILL + '/helper.txt')", skill_differs
    ),
    "hard_link_a_skill_file_and_write": Attack(
        "os.link(SKILL + '/helper.txt', WORK + '/h'); open(WORK + '/h', 'w').write('evil')", skill_differs
    ),
    "add_a_skill_file": Attack("open(SKILL + '/evil.py', 'w').write('evil')", skill_differs),
    "change_the_mode_of_a_skill_file": Attack("os.chmod(SKILL + '/helper.txt', 0o777)", skill_differs),
    "change_the_mode_of_an_open_skill_file": Attack(
        "os.fchmod(os.open(SKILL + '/helper.txt', os.O_RDONLY), 0o777)", skill_differs
    ),
    "move_the_skill_aside": Attack(
        "os.rename(SKILL, ROOM + '/old'); os.mkdir(SKILL)", lambda room: (room.root / "old").exists()
    ),
    "connect_by_tcp_4": Attack(
        CONNECT.format(family="socket.AF_INET", kind="socket.SOCK_STREAM", to="('127.0.0.1', int(ARGUMENT))", say=""),
        took_secret,
        tcp(socket.AF_INET, "127.0.0.1"),
    ),
    "connect_by_tcp_6": Attack(
        CONNECT.format(family="socket.AF_INET6", kind="socket.SOCK_STREAM", to="('::1', int(ARGUMENT))", say=""),
        took_secret,
        tcp(socket.AF_INET6, "::1"),
    ),
    "send_by_udp": Attack(
        CONNECT.format(
            family="socket.AF_INET",
            kind="socket.SOCK_DGRAM",
            to="('127.0.0.1', int(ARGUMENT))",
            say="s.send(b'x'); ",
        ),
        took_secret,
        lambda _: listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
    ),
    "connect_to_a_unix_socket": Attack(
        CONNECT.format(family="socket.AF_UNIX", kind="socket.SOCK_STREAM", to="ARGUMENT", say=""),
        took_secret,
        socket_outside,
    ),
    "connect_to_an_abstract_socket": Attack(
        CONNECT.format(family="socket.AF_UNIX", kind="socket.SOCK_STREAM", to="ARGUMENT.replace('@', chr(0))", say=""),
        took_secret,
        lambda room: listening(socket.AF_UNIX, socket.SOCK_STREAM, f"\0skillkit-{os.getpid()}-{room.root.name}"),
    ),
    "connect_through_a_shell": Attack(
        "loot(subprocess.check_output(['bash', '-c', f'cat < /dev/tcp/127.0.0.1/{ARGUMENT}'], text=True))",
        took_secret,
        tcp(socket.AF_INET, "127.0.0.1"),
    ),
    "make_a_socket_to_the_hypervisor": Attack("loot(socket.socket(40, socket.SOCK_STREAM))", took_something),
    "talk_to_the_kernel_by_netlink": Attack("loot(socket.socket(16, socket.SOCK_RAW, 12))", took_something),
    "set_up_io_uring": Attack(
        "p = ctypes.create_string_buffer(120); n = libc.syscall(425, 4, p); n >= 0 and loot(n)", took_something
    ),
    "call_the_kernel_in_32_bit": Attack(
        """
import mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\\x53\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\x5b\\xc3")  # push rbx; mov eax, 20; int 0x80; pop rbx; ret
call = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
n = call(); n == os.getpid() and loot(n)
""",
        took_something,
    ),
    "call_the_kernel_by_the_numbers_of_x32": Attack(
        "n = libc.syscall(ctypes.c_long(0x40000000 + 39)); n >= 0 and loot(n)", took_something
    ),
    "keep_a_key_in_the_kernel": Attack(
        "n = libc.syscall(248, b'user', b'skillkit', b'x', 1, -3); n >= 0 and loot(n)", took_something
    ),
    "watch_with_perf": Attack(
        "a = struct.pack('=II', 1, 64) + bytes(32) + struct.pack('=Q', 0x61) + bytes(16); "
        "n = libc.syscall(298, a, 0, -1, -1, 0); n >= 0 and loot(n)",
        took_something,
    ),
    "handle_page_faults": Attack("n = libc.syscall(323, 1); n >= 0 and loot(n)", took_something),
    "trace_a_process": Attack(
        "pid = int(ARGUMENT.split(':')[0]); libc.ptrace(16, pid, 0, 0) == 0 and loot('traced')", took_something, victim
    ),
    "read_the_memory_of_a_process": Attack(
        """
pid, address = map(int, ARGUMENT.split(':'))
class Span(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(200)
local, remote = Span(ctypes.addressof(buffer), 200), Span(address, 200)
libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0); loot(buffer.raw)
""",
        took_secret,
        victim,
    ),
    "take_a_descriptor_of_a_process": Attack(
        "fd = libc.syscall(434, int(ARGUMENT.split(':')[0]), 0); n = libc.syscall(438, fd, 1, 0); n >= 0 and loot(n)",
        took_something,
        victim,
    ),
    "kill_a_process": Attack(
        "os.kill(int(ARGUMENT.split(':')[0]), 9); time.sleep(0.2)",
        lambda room: (room.outside / "victim-died").exists(),
        victim,
    ),
    "kill_a_process_by_descriptor": Attack(
        "libc.syscall(424, libc.syscall(434, int(ARGUMENT.split(':')[0]), 0), 9, 0, 0); time.sleep(0.2)",
        lambda room: (room.outside / "victim-died").exists(),
        victim,
    ),
    "read_the_environment_of_a_process": Attack(
        "loot(open(f\"/proc/{ARGUMENT.split(':')[0]}/environ\").read())", took_secret, victim
    ),
    "read_the_command_line_of_a_process": Attack(
        "loot(open(f\"/proc/{ARGUMENT.split(':')[0]}/cmdline\").read())", took_secret, victim
    ),
    "enter_the_root_of_a_process": Attack(
        "loot(open(f\"/proc/{ARGUMENT.split(':')[0]}/cwd/secret\").read())", took_secret, victim
    ),
    "search_all_processes": Attack(
        """
import glob
for path in glob.glob('/proc/[0-9]*/cmdline'):
    try: loot(open(path).read()) if str(os.getpid()) not in path else None
    except OSError: pass
""",
        took_secret,
        victim,
    ),
    "lower_the_priority_of_a_process": Attack(
        "pid = int(ARGUMENT.split(':')[0]); os.setpriority(os.PRIO_PROCESS, pid, 19); "
        "os.getpriority(os.PRIO_PROCESS, pid) == 19 and loot('slow')",
        took_something,
        victim,
    ),
    "read_shared_memory": Attack(
        """
libc.shmat.restype = ctypes.c_void_p
n = libc.shmget(int(ARGUMENT), 0, 0)
if n >= 0: loot(ctypes.string_at(libc.shmat(n, None, 0), 100))
""",
        took_secret,
        shared_memory,
    ),
    "read_a_shared_memory_file": Attack("loot(open('/dev/shm/' + ARGUMENT).read())", took_secret, shared_file),
    "make_a_setuid_file": Attack(
        "open(WORK + '/su', 'w').close(); os.chmod(WORK + '/su', 0o4755)",
        lambda room: (room.work / "su").exists() and bool((room.work / "su").stat().st_mode & stat.S_ISUID),
    ),
    "make_a_setgid_file_at_birth": Attack(
        "os.close(os.open(WORK + '/su', os.O_CREAT | os.O_WRONLY, 0o6755))",
        lambda room: (room.work / "su").exists() and bool((room.work / "su").stat().st_mode & stat.S_ISUID),
    ),
    "make_a_user_namespace": Attack("libc.unshare(0x10000000) == 0 and loot('new')", took_something),
    "make_a_namespace_by_clone": Attack(
        "n = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0); n == 0 and os._exit(0); n > 0 and loot('new')",
        took_something,
    ),
    "read_the_accounts_of_the_host": Attack(
        "names = [line.split(':')[0] for line in open('/etc/passwd')]; 'daemon' in names and loot(names)",
        took_something,
    ),
    "list_the_sockets_of_services": Attack("loot(os.listdir('/run') + os.listdir('/var/lib'))", took_something),
    "read_hardware_settings": Attack("loot(os.listdir('/sys/class'))", took_something),
}


# Some kernels and settings do not allow these to anybody; then the control proves nothing, and says so.
KERNEL_DEPENDENT = {
    "change_attributes_outside",
    "connect_by_tcp_6",
    "make_a_socket_to_the_hypervisor",
    "set_up_io_uring",
    "call_the_kernel_in_32_bit",
    "call_the_kernel_by_the_numbers_of_x32",
    "keep_a_key_in_the_kernel",
    "watch_with_perf",
    "handle_page_faults",
    "trace_a_process",
    "read_the_memory_of_a_process",
    "take_a_descriptor_of_a_process",
    "make_a_user_namespace",
    "make_a_namespace_by_clone",
}


def attacked(room: Room, name: str) -> Room:
    attack = ATTACKS[name]
    (room.outside / "secret").write_text(SECRET)
    (room.outside / "secret").chmod(0o600)
    (room.skill / "helper.txt").write_text("helper")
    (room.skill / "helper.txt").chmod(0o644)
    (room.skill / "attack.py").write_text(PREAMBLE + attack.script)
    room.hand_over()
    return room


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("user", users())
def test_the_walls_hold_against(name: str, user: int | None) -> None:
    with open_folder() as folder:
        room = attacked(Room.made(folder, user=user), name)
        with ATTACKS[name].target(room) as argument:
            _, output, errors = room.run(PYTHON, str(room.skill / "attack.py"), str(room.root), argument)
        assert output.startswith("attacking"), errors
        assert not ATTACKS[name].effect(room)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_walls_that_stood_before_hold_against(name: str) -> None:
    """The control is the same: without walls each of these works."""
    with open_folder() as folder:
        room = attacked(Room.made(folder), name)
        with ATTACKS[name].target(room) as argument:
            words = (str(room.root), argument)
            _, output, errors = room.run_warm(PYTHON, str(room.skill / "attack.py"), script_arguments=words)
        assert output.startswith("attacking"), errors
        assert not ATTACKS[name].effect(room)


@pytest.mark.parametrize("name", ATTACKS)
def test_without_walls_it_works_to(name: str) -> None:
    with open_folder() as folder:
        room = attacked(Room.made(folder, user=users()[-1]), name)
        with ATTACKS[name].target(room) as argument:
            _, _, errors = room.run_bare(PYTHON, str(room.skill / "attack.py"), str(room.root), argument)
        if name in KERNEL_DEPENDENT and not ATTACKS[name].effect(room):
            pytest.skip(f"this kernel does not allow it without walls either: {errors[-200:]}")
        assert ATTACKS[name].effect(room), errors
