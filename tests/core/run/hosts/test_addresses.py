"""Which addresses are public: a table, the same under every Python."""

from __future__ import annotations

import ipaddress

import pytest

from skillkit.core.run.hosts.addresses import is_public
from skillkit.core.values.addresses import is_closed

PUBLIC = """
    1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 198.20.0.1 223.255.255.254
    2001:4860:4860::8888 2606:4700::1111 2a00:1450:4001:80b::200e 2400:cb00::1 3ffe::1 64:ff9b::808:808
"""
NOT_PUBLIC = """
    0.1.2.3 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 192.0.0.9 192.0.0.170 192.0.2.1 192.88.99.1
    192.168.0.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255
    :: ::1 ::8.8.8.8 ::ffff:8.8.8.8 ::ffff:10.0.0.1 ::ffff:0:8.8.8.8 ::ffff:0:10.0.0.1 64:ff9b::a00:1 64:ff9b:1::1
    64:ff9b:1::808:808 100::1 100:0:0:1::1 2001::1 2001:1::1 2001:2::1 2001:20::1 2001:db8::1 2002:808:808::1
    2002:a00:1::1 3fff::1 3fff:fff::1 4000::1 5f00::1 fc00::1 fd00::1 fe80::1 fec0::1 feff::1 ff02::1
"""
CLOSED = "127.0.0.1 0.0.0.0 169.254.169.254 ::1 ::ffff:127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 fe80::1 ff02::1"


@pytest.mark.parametrize("text", PUBLIC.split())
def test_what_was_given_out_to_everybody_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))
    assert not is_closed(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", NOT_PUBLIC.split())
def test_what_has_a_purpose_of_its_own_is_not(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", CLOSED.split())
def test_this_machine_and_its_link_are_closed_in_every_writing(text: str) -> None:
    assert is_closed(ipaddress.ip_address(text))
