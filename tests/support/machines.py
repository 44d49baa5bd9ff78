"""Machines that are network namespaces, each with one cable to this one: nothing else of it is reachable from there."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Machine", "can_make_machines", "machine"]


@dataclass(frozen=True)
class Machine:
    """Words before a command make it run there; `gateway` is what this machine is called from there."""

    name: str
    gateway: str
    before: tuple[str, ...]


def can_make_machines() -> bool:
    return os.getuid() == 0 and shutil.which("ip") is not None


@contextlib.contextmanager
def machine() -> Iterator[Machine]:
    token = secrets.token_hex(3)
    name, here, there = f"sk-{token}", f"ska{token}", f"skb{token}"
    chosen = random.SystemRandom()
    net = f"10.{chosen.randrange(200, 250)}.{chosen.randrange(1, 250)}"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
        _ip("addr", "add", f"{net}.1/24", "dev", here)
        _ip("link", "set", here, "up")
        _ip("-n", name, "addr", "add", f"{net}.2/24", "dev", there)
        for device in ("lo", there):
            _ip("-n", name, "link", "set", device, "up")
        yield Machine(name, f"{net}.1", ("ip", "netns", "exec", name))
    finally:
        _ip("netns", "del", name)  # takes the cable along


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)
