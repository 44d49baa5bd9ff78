"""A host's name -> the addresses a run may be connected to: public ones, or private ones that a person opened."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

from skillkit.core.values.hosts import NOT_PUBLIC

__all__ = ["Address", "allowed_addresses", "is_closed", "is_loopback_name", "is_public", "service_addresses"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PRIVATE = tuple(
    map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"))
)
# Where clouds answer their own machines: keys, names, time.
_METADATA = tuple(
    map(
        ipaddress.ip_network,
        ("169.254.0.0/16", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::/32", "fd20:ce::254"),
    )
)
# Of the registries of special addresses, whatever the Python at hand knows of them.
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        """
        0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
        192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
        2001::/23 2001:db8::/32 2002::/16 3fff::/20
        """.split(),
    )
)
_PUBLIC_6 = ipaddress.ip_network("2000::/3")
"""All of version 6 that was ever given out to the public."""
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_TRANSLATED_OTHERWISE = tuple(map(ipaddress.ip_network, ("64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96")))


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
    return is_public(address) or (is_private and any(_is_in(address, network) for network in _PRIVATE))


def is_public(address: Address) -> bool:
    """Reachable by everybody, also when looked at as the address of version 4 that stands in it."""
    return all(_is_given_out(each) for each in _meanings(address))


def _is_given_out(address: Address) -> bool:
    """A translated address is as public as the one of version 4 in it, which is looked at beside it."""
    is_outside = isinstance(address, ipaddress.IPv6Address) and address not in _PUBLIC_6
    return not any(_is_in(address, network) for network in _SPECIAL) and (not is_outside or address in _TRANSLATED)


def is_closed(address: Address) -> bool:
    """Never opened to a script, whoever says so: this machine itself, its link, and where clouds keep keys."""
    return any(
        each.is_loopback
        or each.is_link_local
        or each.is_unspecified
        or each.is_multicast
        or any(_is_in(each, network) for network in _METADATA)
        or (isinstance(each, ipaddress.IPv4Address) and int(each) >> 24 in (0, 127))
        for each in _meanings(address)
    )


def _meanings(address: Address) -> list[Address]:
    """The address, and those of version 4 that the network may take it for."""
    meanings: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        inner = (address.ipv4_mapped, address.sixtofour, *(address.teredo or ()))
        meanings += [each for each in inner if each is not None]
        if any(address in network for network in (_TRANSLATED, *_TRANSLATED_OTHERWISE)):
            meanings.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return meanings


def _is_in(address: Address, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return address.version == network.version and address in network


def _is_own(text: str) -> bool:
    """Whether it is an address of this machine: only those can be bound."""
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((text, 0))
    except OSError:
        return False
    return True
