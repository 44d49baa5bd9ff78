"""A connection on this machine -> whether another user of it made it.

The link that logs in stands on a command line while the browser starts, where other users of the machine can read it,
and a browser sends the page's cookie to every server on this machine, theirs too.
"""

from __future__ import annotations

import ipaddress
import os
import sys

__all__ = ["is_stranger"]

TABLE = "/proc/net/tcp"
LOCAL, REMOTE, OWNER = 1, 2, 7
ROOT = 0

Endpoint = tuple[str, int]


def is_stranger(client: Endpoint | None, server: Endpoint | None) -> bool:
    """Only where the system says so: Linux names the user of every connection it holds itself."""
    if client is None or server is None or not hasattr(os, "geteuid"):
        return False
    owner = owner_of(client, server)
    return owner is not None and owner not in (os.geteuid(), ROOT)


def owner_of(client: Endpoint, server: Endpoint) -> int | None:
    """Who holds the client's end."""
    try:
        ends = [written(client), written(server)]
        with open(TABLE, encoding="ascii") as table:
            rows = (line.split() for line in table)
            return next((int(row[OWNER]) for row in rows if [row[LOCAL], row[REMOTE]] == ends), None)
    except (OSError, ValueError):  # another system; a name instead of an address
        return None


def written(endpoint: Endpoint) -> str:
    """As the kernel's table does: the address in the machine's own order of bytes."""
    address = ipaddress.IPv4Address(endpoint[0]).packed
    return f"{int.from_bytes(address, sys.byteorder):08X}:{endpoint[1]:04X}"
