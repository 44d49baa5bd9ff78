"""A host's name -> the addresses a run may be connected to: public ones, or private ones that a person opened."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

from skillkit.core.values.addresses import is_closed, is_private_address, is_public
from skillkit.core.values.hosts import NOT_PUBLIC

__all__ = ["allowed_addresses", "is_loopback_name", "is_public", "service_addresses"]


def allowed_addresses(name: str, port: int, *, is_private: bool) -> Sequence[tuple[str, int]]:
    """Where to connect, in the resolver's order; raises PermissionError where every address is closed.

    Asked once: whoever connects uses what is given here and does not ask again.
    """
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    addresses = dict.fromkeys(str(info[4][0]) for info in found)
    allowed = [each for each in addresses if _is_allowed(each, is_private=is_private)]
    if not allowed:
        can_open = not is_private and any(_is_allowed(each, is_private=True) for each in addresses)
        reason = f"which {NOT_PUBLIC}" if can_open else f"which {NOT_PUBLIC}, and is never opened"
        raise PermissionError(f"{name} leads to {', '.join(addresses)}, {reason}")
    return [(each, port) for each in allowed]


def service_addresses(name: str, port: int, *, is_elsewhere: bool = False) -> Sequence[tuple[str, int]]:
    """Of a service that the user's own settings name: in any network, but on this machine only where its name says so.

    One that such a service names in its turn is elsewhere: never on this machine.
    Links and the places where clouds keep keys stay closed: a name that leads there was led there by somebody else.
    """
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    addresses = dict.fromkeys(str(info[4][0]) for info in found)
    if is_loopback_name(name) and not is_elsewhere:
        allowed = [each for each in addresses if ipaddress.ip_address(each).is_loopback]
    else:
        outer = [each for each in addresses if "%" not in each and not is_closed(ipaddress.ip_address(each))]
        allowed = [each for each in outer if not (is_elsewhere and _is_own(each))]
    if not allowed:
        raise PermissionError(f"{name} leads to {', '.join(addresses)}, which is closed to every tool")
    return [(each, port) for each in allowed]


def is_loopback_name(name: str) -> bool:
    """`localhost`, or an address that means the same."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _is_allowed(text: str, *, is_private: bool) -> bool:
    try:
        address = ipaddress.ip_address(text)  # one with a zone is link-local
    except ValueError:
        return False
    if is_closed(address) or _is_own(text):
        return False
    return is_public(address) or (is_private and is_private_address(address))


def _is_own(text: str) -> bool:
    """Whether it is an address of this machine: only those can be bound."""
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((text, 0))
    except OSError:
        return False
    return True
