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


def is_private_address(address: Address) -> bool:
    """In a network that belongs to somebody: opened to a script where a person says so."""
    return any(_is_in(address, network) for network in _PRIVATE)


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
