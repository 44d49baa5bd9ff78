"""A whole small network in namespaces of its own: a machine, a name server that lies, and hosts at any address.

Run as a program below `unshare --user --map-root-user --net --mount`: `small_internet.py FOLDER` reads questions as JSON
from stdin, tells for each what the proxy of a run did with it, or what a whole run came to, and ends. Nothing leaves:
there is no way out of these namespaces.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from skillkit import STANDARD, TRUSTED, SkillManager
from skillkit.core.run.hosts.proxy import Proxy
from skillkit.core.run.sandbox import choose
from skillkit.core.values.hosts import HostRule

OWN_PUBLIC, PUBLIC, PRIVATE = "93.184.216.1", "93.184.216.34", "10.20.30.40"
PUBLIC_6, OWN_6 = "2606:2800:220:1::34", "2606:2800:220:1::1"
METADATA = "169.254.169.254"
RESOLVER = "8.8.8.8"
HOSTS = (PUBLIC, PRIVATE, METADATA, "100.100.100.200", "168.63.129.16", "192.0.0.192")
HOSTS_6 = (PUBLIC_6, "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fc00::40", "64:ff9b::a14:1e28")
PORTS = (443, 80, 8443, 53)
A, CNAME, AAAA = 1, 5, 28
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1


class Names(threading.Thread):
    """A name server. A list of answers is given one after the other, the last one for good."""

    def __init__(self, names: dict[str, list[list[str]]]) -> None:
        super().__init__(daemon=True)
        self._names = names
        self.asked: list[str] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 53))

    def run(self) -> None:
        while True:
            query, client = self._socket.recvfrom(4096)
            self._socket.sendto(self._answer(query), client)

    def _answer(self, query: bytes) -> bytes:
        labels, at = [], 12
        while size := query[at]:
            labels.append(query[at + 1 : at + 1 + size].decode())
            at += 1 + size
        kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
        name = ".".join(labels).lower()
        answers = self._names.get(name)
        if answers is None:
            return query[:2] + b"\x81\x83" + query[4:6] + b"\0\0\0\0\0\0" + query[12 : at + 5]
        now = answers[min(len([each for each in self.asked if each == name]), len(answers) - 1)]
        if kind == A:
            self.asked.append(name)
        records = [record for text in now for record in _records(text, kind)]
        head = query[:2] + b"\x81\x80" + query[4:6] + struct.pack(">HHH", len(records), 0, 0)
        return head + query[12 : at + 5] + b"".join(records)


def _records(text: str, kind: int) -> list[bytes]:
    """An address of the kind that was asked for, for the name that was asked for; a CNAME brings its own answer."""
    target, _, address = text.removeprefix("=").rpartition(",")
    owner, alias = b"\xc0\x0c", list[bytes]()
    if target:
        spelled = b"".join(bytes([len(each)]) + each.encode() for each in target.split(".")) + b"\0"
        alias = [owner + struct.pack(">HHIH", CNAME, 1, 0, len(spelled)) + spelled]
        owner = spelled
    is_6 = ":" in address
    if kind != (AAAA if is_6 else A):
        return alias
    packed = socket.inet_pton(socket.AF_INET6 if is_6 else socket.AF_INET, address)
    return [*alias, owner + struct.pack(">HHIH", kind, 1, 0, len(packed)) + packed]


def build() -> None:
    """Two namespaces with a wire between them: the machine here, every host on the other side."""
    other = _other_namespace()

    def run(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    def inside(*words: str) -> None:
        subprocess.run(["nsenter", f"--net=/proc/{other}/ns/net", "ip", *words], check=True)

    run("link", "set", "lo", "up")
    run("link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(other))
    inside("link", "set", "lo", "up")
    for place, wire, own, own_6 in ((run, "near", OWN_PUBLIC, OWN_6), (inside, "far", "93.184.216.2", PUBLIC_6)):
        place("link", "set", wire, "up")
        place("addr", "add", f"{own}/24", "dev", wire)
        place("addr", "add", f"{own_6}/64", "dev", wire, "nodad")
    for address in (RESOLVER, *HOSTS, *HOSTS_6):
        if address != PUBLIC_6:
            inside("addr", "add", address, "dev", "far", *(["nodad"] if ":" in address else []))
    run("route", "add", "default", "via", "93.184.216.2")
    run("-6", "route", "add", "default", "via", PUBLIC_6)
    folder = Path(sys.argv[1])
    texts = {"resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n", "hosts": "127.0.0.1 localhost\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)
        subprocess.run(["mount", "--bind", str(folder / name), os.path.realpath(f"/etc/{name}")], check=True)


def _other_namespace() -> int:
    """Of a process that serves every address there, on each port, and says which it was."""
    ready, told = os.pipe()
    child = os.fork()  # noqa: TID251 - a namespace needs a process of its own
    if not child:
        library = ctypes.CDLL(None, use_errno=True)
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        library.unshare(CLONE_NEWNET)
        os.close(1)
        os.write(told, b".")
        _serve_everything()
    os.read(ready, 1)
    return child


def _serve_everything() -> None:
    for port in PORTS:
        server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        threading.Thread(target=greet, args=(server,), daemon=True).start()
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as server:
        server.bind(("::", 53))
        until = time.monotonic() + 120
        while time.monotonic() < until:
            data, client = server.recvfrom(4096)
            server.sendto(b"heard " + data, client)
    os._exit(0)


def greet(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        with connection:
            connection.sendall(f"at {connection.getsockname()[0].removeprefix('::ffff:')}\n".encode())


def reach(port: int, authority: str) -> str:
    """What a script hears that asks the proxy for a host: who greets it, or the status of the refusal."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(f"CONNECT {authority} HTTP/1.1\r\n\r\n".encode())
        data = b""
        while piece := connection.recv(4096):
            data += piece
    said = data.decode()
    return said.partition("\r\n\r\n")[2].strip() if " 200 " in said else said[9:12]


def main() -> None:
    build()
    if os.stat("/usr/bin").st_uid != 0:
        # An ordinary user made these namespaces: root is nobody in them, and whose bubblewrap is cannot be told.
        setattr(choose, "is_roots", bool)  # noqa: B010 - it is not exported
    names = json.loads(sys.stdin.readline())
    server = Names(names)
    server.start()
    # What a machine has of its own on all its addresses, which no script may reach.
    for family, any_address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        own = socket.socket(family, socket.SOCK_STREAM)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        own.bind((any_address, 443))
        own.listen()
        threading.Thread(target=greet, args=(own,), daemon=True).start()
    for line in sys.stdin:
        rules, authority, *argv = json.loads(line)
        if argv:
            answer(run(rules, argv))
            continue
        if not rules:  # the control: what a plain connection reaches
            answer(plain(authority))
            continue
        proxy = Proxy([HostRule.from_id(each) for each in rules])
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=proxy.serve, args=(listener,))
            thread.start()
            said = reach(listener.getsockname()[1], authority)
            proxy.close()
            thread.join()
        answer([said, *(use.refused for use in proxy.used())])
    os._exit(0)


def run(rules: list[str], argv: list[str]) -> list[str]:
    """One run of the script in FOLDER: within walls and with these hosts; without any walls where none is named."""
    folder = Path(sys.argv[1])
    policy = replace(STANDARD, sandbox="required", allowed_hosts=tuple(rules)) if rules else TRUSTED
    with SkillManager(folder / "skills", "", [], [], policy=policy, state_dir=folder / "state") as manager:
        result = manager.execute_skill_script("net", "out.py", argv=argv, timeout=60)
    return [result.stdout.strip(), result.stderr.strip(), *(use.refused for use in result.hosts)]


def answer(told: list[str]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def plain(authority: str) -> list[str]:
    name, _, port = authority.rpartition(":")
    try:
        with socket.create_connection((name.strip("[]"), int(port)), timeout=5) as connection:
            return [connection.makefile().readline().strip()]
    except OSError as error:
        return [f"failed: {error}"]


if __name__ == "__main__":
    main()
