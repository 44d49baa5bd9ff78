"""A connection on this machine -> whether another user of it made it.

The link that logs in stands on a command line while the browser starts, where other users of the machine can read it,
and a browser sends the page's cookie to every server on this machine, theirs too.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterable, Iterator

__all__ = ["Endpoint", "is_stranger", "strangers_among"]

# A socket of the newer protocol reaches an address of the older one too, and then stands in the second table.
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
MAPPED = f"{0:016X}{int.from_bytes(bytes((0, 0, 255, 255)), sys.byteorder):08X}"
LOCAL, REMOTE, OWNER, INODE = 1, 2, 7, 9
NOBODYS = "0"
ROOT = 0
LOOKS = 2  # a table that changes while it is read can leave a row out

Endpoint = tuple[str, int]


class UnknownOwnerError(LookupError):
    """The system lists its connections, but this one is not among them, or nobody holds it any more."""


def is_stranger(client: Endpoint | None, server: Endpoint | None) -> bool:
    """Only where the system says so: Linux names the user of every connection it holds itself."""
    if client is None or server is None or not hasattr(os, "geteuid"):
        return False
    try:
        owner = owner_of(client, server)
    except UnknownOwnerError:
        return True
    return owner is not None and owner not in (os.geteuid(), ROOT)


def strangers_among(clients: Iterable[Endpoint], server: Endpoint) -> set[Endpoint]:
    """Those of `clients` that other users of this machine hold, so far as it says so, from one look at the tables."""
    if not hasattr(os, "geteuid"):
        return set()
    try:
        ours, at = {str(os.geteuid()), str(ROOT)}, written(server)
        owners = {row[LOCAL].removeprefix(MAPPED): row[OWNER] for row in rows() if row[REMOTE].endswith(at)}
        return {client for client in clients if owners.get(written(client), str(ROOT)) not in ours}
    except (OSError, ValueError):  # not for us to read; a name instead of an address
        return set()


def owner_of(client: Endpoint, server: Endpoint) -> int | None:
    """Who holds the client's end; None where the system does not say."""
    if not any(map(os.path.exists, TABLES)):
        return None
    try:
        ends = (written(client), written(server))
        owner = next(filter(None, (listed_owner(*ends) for _ in range(LOOKS))), None)
    except (OSError, ValueError):  # not for us to read; a name instead of an address
        return None
    if owner is None:
        raise UnknownOwnerError
    return int(owner)


def listed_owner(client: str, server: str) -> str | None:
    """An end that was closed already has no inode, and older kernels call it root's."""
    for row in rows():
        if [row[LOCAL].removeprefix(MAPPED), row[REMOTE].removeprefix(MAPPED)] == [client, server]:
            return row[OWNER] if row[INODE] != NOBODYS else None
    return None


def rows() -> Iterator[list[str]]:
    for table in filter(os.path.exists, TABLES):
        with open(table, encoding="ascii") as file:
            yield from map(str.split, file)


def written(endpoint: Endpoint) -> str:
    """As the kernel's table does: the address in the machine's own order of bytes."""
    address = ipaddress.IPv4Address(endpoint[0]).packed
    return f"{int.from_bytes(address, sys.byteorder):08X}:{endpoint[1]:04X}"
