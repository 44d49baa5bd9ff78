"""An address -> whether everybody can reach it, whether only a person's word opens it, or nobody's does."""

from __future__ import annotations

import ipaddress

__all__ = ["Address", "is_closed", "is_private_address", "is_public"]

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
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_TRANSLATED_LOCALLY = ipaddress.ip_network("64:ff9b:1::/48")


def is_public(address: Address) -> bool:
    """Reachable by everybody, also when looked at as the address of version 4 that stands in it."""
    return all(each.is_global and not each.is_multicast for each in _meanings(address))


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


def is_private_address(address: Address) -> bool:
    """In a network that belongs to somebody: opened to a script where a person says so."""
    return any(_is_in(address, network) for network in _PRIVATE)


def _meanings(address: Address) -> list[Address]:
    """The address, and those of version 4 that the network may take it for."""
    meanings: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        inner = (address.ipv4_mapped, address.sixtofour, *(address.teredo or ()))
        meanings += [each for each in inner if each is not None]
        if address in _TRANSLATED or address in _TRANSLATED_LOCALLY or int(address) >> 32 == 0:
            meanings.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return meanings


def _is_in(address: Address, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return address.version == network.version and address in network
