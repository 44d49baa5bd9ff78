"""This host -> what walls of namespaces have to know of it: folders, links, ids, limits, sockets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skillkit.core.paths import is_inside

__all__ = ["Machine", "has_socket_in", "this_machine"]

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
# Programs below /usr link into these. Each costs a mount, 0.2 ms, where it is no link itself.
SETTINGS = "alternatives fonts ImageMagick-6 ImageMagick-7 libreoffice texmf ld.so.cache localtime os-release".split()
NETWORK_SETTINGS = (
    "resolv.conf hosts nsswitch.conf services ssl/certs pki/tls/certs pki/ca-trust/extracted ca-certificates/extracted"
).split()
# At the top of the tree, and not users' files: the system, and where services keep their sockets.
IMPERSONAL = {*"bin boot dev etc gnu lib lib32 lib64 libx32 lost+found nix proc run sbin sys tmp usr var".split()}
ORDINARY_ID = 1000  # shown to a script that root runs: as 0 it would try what it has no capability for
LIMITS = {"data": "DATA", "fsize": "FSIZE", "nproc": "NPROC", "nofile": "NOFILE", "cpu": "CPU"}
SOCKET_NAME_COLUMN = 7  # in /proc/net/unix


@dataclass(frozen=True, slots=True)
class Machine:
    """What the walls have to know of the host; looked up once."""

    system: tuple[tuple[str, str], ...]
    """The system's folders that exist, each with the target of the link it is, or empty."""
    settings: tuple[tuple[str, str], ...]
    """The same for what stands below /etc."""
    network_settings: tuple[str, ...]
    personal: tuple[tuple[str, str], ...]
    """The same for the folders that hold users' files."""
    uid: int
    gid: int
    is_root: bool = False
    hard_limits: Mapping[str, int] = field(default_factory=dict, hash=False)
    """By prlimit's names; more than these cannot be asked for."""


def this_machine() -> Machine:
    import resource

    hard = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{label}"))[1] for name, label in LIMITS.items()}
    java = [name for name in sorted(os.listdir("/etc")) if name.startswith("java-")]
    is_root = os.geteuid() == 0
    return Machine(
        system=_standing(SYSTEM),
        settings=_standing(f"/etc/{name}" for name in (*SETTINGS, *java)),
        network_settings=tuple(f"/etc/{name}" for name in NETWORK_SETTINGS if os.path.exists(f"/etc/{name}")),
        personal=_personal(),
        uid=ORDINARY_ID if is_root else os.geteuid(),
        gid=ORDINARY_ID if is_root else os.getegid(),
        is_root=is_root,
        hard_limits={name: value for name, value in hard.items() if value != resource.RLIM_INFINITY},
    )


def _standing(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Those that exist; a link into the system can be made again, anything else has to be mounted."""
    found = []
    for path in paths:
        if os.path.exists(path):
            target = os.path.realpath(path)
            leads_into_system = target != path and any(is_inside(target, each) for each in SYSTEM)
            found.append((path, target if leads_into_system else ""))
    return tuple(found)


def _personal() -> tuple[tuple[str, str], ...]:
    found = []
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        target = os.path.realpath(path)
        if name in IMPERSONAL or not os.path.isdir(path):
            continue
        found.append((path, "" if target == path else target))
        if target != path and target.split("/")[1] not in IMPERSONAL - {"var"}:
            found.append((target, ""))
    return tuple(found)


def has_socket_in(folders: tuple[str, ...]) -> bool:
    """Whether a program listens on a unix socket below one of `folders`: a mount hides no socket it contains.

    A socket that was bound by a relative name could be anywhere, so it counts.
    """
    if not folders:
        return False
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()[1:]
    except OSError:
        return True
    columns = (line.split(None, SOCKET_NAME_COLUMN) for line in lines)
    names = [each[SOCKET_NAME_COLUMN] for each in columns if len(each) > SOCKET_NAME_COLUMN]
    return any(_may_be_in(name, folders) for name in names if name[0] != "@")


def _may_be_in(name: str, folders: tuple[str, ...]) -> bool:
    return name[0] != "/" or any(is_inside(os.path.realpath(name), each) for each in folders)
