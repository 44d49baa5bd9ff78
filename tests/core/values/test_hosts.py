"""Rules for hosts: which texts are rules, and which host and port each opens."""

from __future__ import annotations

import re

import pytest

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.hosts import HostRule, HostUse, host_name, require_openable
from skillkit.core.values.needs import Need
from skillkit.core.values.policy import ScriptPolicy


@pytest.mark.parametrize(
    ("rule", "name", "port", "expected"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "api.example.com", 80, True),
        ("api.example.com", "api.example.com", 8443, False),
        ("api.example.com", "example.com", 443, False),
        ("api.example.com", "x.api.example.com", 443, False),
        ("API.Example.com.", "api.example.com", 443, True),
        ("*.example.org", "a.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "badexample.org", 443, False),
        ("host.example.com:8443", "host.example.com", 8443, True),
        ("host.example.com:8443", "host.example.com", 443, False),
        ("*", "anything.example", 443, True),
        ("*", "anything.example", 22, False),
        ("*", "93.184.216.34", 443, True),
        ("93.184.216.34", "93.184.216.34", 443, True),
        ("2606:2800::1", "2606:2800::1", 443, True),
        ("[2606:2800::1]:8443", "2606:2800::1", 8443, True),
        ("[2606:2800::1]", "2606:2800::1", 443, True),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
    ],
)
def test_a_rule_opens_what_it_names(rule: str, name: str, port: int, expected: bool) -> None:
    assert HostRule.parse(rule).opens(name, port) is expected


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "*.", "*.com", "**.example.com", "a.*.example.com", "*example.com", "https://example.com"),
        *("example.com/path", "user@example.com", "example.com:", "example.com:0", "example.com:65536", "a b"),
        *("example.com:https", "-a.example.com", "a..example.com", "%61.example.com", "127.1", "0x7f.1", "2130706433"),
        *("*.93.184.216.34", "example.com:443:443", "a" * 64 + ".com", ".".join(["abcd"] * 60), "exa\nmple.com", "*.*"),
    ],
)
def test_what_is_no_host_is_told(text: str) -> None:
    with pytest.raises(ConfigurationError):
        HostRule.parse(text)


CLOSED = [
    *(
        "127.0.0.1",
        "127.8.9.10:8080",
        "[::1]:443",
        "::1",
        "0.0.0.0",
        "localhost",
        "a.localhost:3000",
        "::ffff:127.0.0.1",
    ),
    *("169.254.169.254", "169.254.1.1:80", "fe80::1", "fd00:ec2::254", "100.100.100.200", "metadata.google.internal"),
]


@pytest.mark.parametrize("text", CLOSED)
@pytest.mark.parametrize("end", ["", " private"])
def test_what_is_never_reached_is_no_rule_of_a_policy(text: str, end: str) -> None:
    """Also where somebody says that it is private."""
    with pytest.raises(ConfigurationError, match=r"is never opened.*Leave it out"):
        ScriptPolicy(allowed_hosts=(f"{text}{end}",))


@pytest.mark.parametrize("text", ["10.0.0.1", "192.168.1.20:8443", "172.16.0.9", "[fd12::1]:443"])
def test_a_private_address_is_told_at_once_that_it_must_be_said(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--private"):
        require_openable(HostRule.parse(text))
    assert ScriptPolicy(allowed_hosts=(f"{text} private",)).allowed_hosts == (f"{text} private",)
    need = Need("host", text, "inferred", "a.py:1")
    assert need.grant is not None
    assert need.grant.is_private, "what a question offers can be given"
    assert HostUse(text, f"{text} is not among the hosts that this run may reach").grant[-1] == "--private"


@pytest.mark.parametrize("text", ["api.example.com", "*.example.org", "93.184.216.34", "*", "intranet", "box.local:80"])
def test_control_what_may_be_reached_is_a_rule(text: str) -> None:
    assert ScriptPolicy(allowed_hosts=(text,)).allowed_hosts == (text,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Example.COM.", "example.com"),
        ("[::1]", "::1"),
        ("::FFFF:127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("017.0.0.1", None),
        ("example.com..", None),
        ("ex%61mple.com", None),
        ("a@b", None),
        ("\N{FULLWIDTH LATIN SMALL LETTER A}.example", "a.example"),
        # strasse.example to some programs, xn--strae-oqa.example to others: two owners
        ("stra\N{LATIN SMALL LETTER SHARP S}e.example", None),
        ("a\N{ZERO WIDTH JOINER}b.example", None),
        ("\N{GREEK SMALL LETTER FINAL SIGMA}.example", None),
    ],
)
def test_a_host_has_one_spelling(text: str, expected: str | None) -> None:
    assert host_name(text) == expected


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("*", "*.example.org", True),
        ("*", "a.example.org:443", True),
        ("*", "a.example.org:8443", False),
        ("*", "*", True),
        ("*", "10.0.0.1", True),  # each connection's address is judged, whichever rule opens it
        ("*", "fc00::1", True),
        # Where another proxy resolves names, a rule that names one of these opens what "any public host" does not.
        *[("*", name, False) for name in ("intranet", "printer.local", "git.corp", "*.team.internal", "box.home.arpa")],
        ("*", "metadata.google.internal:80", False),
        ("*.team.internal", "git.team.internal", True),
        ("*.example.org", "*", False),
        ("*.example.org", "*.sub.example.org", True),
        ("*.example.org", "*.example.org", True),
        ("*.sub.example.org", "*.example.org", False),
        ("*.example.org", "a.example.org", True),
        ("*.example.org", "example.org", False),
        ("a.example.org", "*.a.example.org", False),
        ("a.example.org", "a.example.org:80", True),
        ("a.example.org:80", "a.example.org", False),
    ],
)
def test_a_rule_covers_what_opens_no_more(wide: str, narrow: str, expected: bool) -> None:
    assert HostRule.parse(wide).covers(HostRule.parse(narrow)) is expected


def test_a_private_rule_is_covered_by_private_ones_only() -> None:
    public, private = HostRule.parse("a.example.org"), HostRule.parse("a.example.org", is_private=True)
    assert private.covers(public)
    assert not public.covers(private)


def test_any_host_is_public() -> None:
    with pytest.raises(ConfigurationError, match="public"):
        HostRule.parse("*", is_private=True)


@pytest.mark.parametrize("text", ["a.example.org", "*.example.org:8443", "*", "[2606:2800::1]:8443", "2606:2800::1"])
def test_a_rule_is_written_as_it_is_read(text: str) -> None:
    assert str(HostRule.parse(text)) == text


@pytest.mark.parametrize(
    ("typed", "host"),
    [
        ("https://api.example.com/v1", "api.example.com"),
        ("http://host.example.com:8443/", "host.example.com:8443"),
        ("api.example.com/", "api.example.com"),
        ("https://me:key@api.example.com", "api.example.com"),
        ("http://x y", "api.example.com, "),
    ],
)
def test_who_types_the_address_of_a_page_is_told_its_host(typed: str, host: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"more than a host.* Write {re.escape(host)}"):
        HostRule.parse(typed)
