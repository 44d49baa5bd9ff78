"""Needs and grants as values: what they may be, and how a grant is named."""

from __future__ import annotations

import pytest

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.grants import grant_label
from skillkit.core.values.needs import GRANT_KINDS, NEED_KINDS, Grant, Need


@pytest.mark.parametrize("kind", GRANT_KINDS)
def test_a_grants_id_names_it_alone(kind: str) -> None:
    grant = Grant(kind, "a:b")
    assert Grant.from_id(grant.id) == grant


def test_a_host_with_private_addresses_is_another_grant() -> None:
    public, private = Grant("host", "a.example.com"), Grant("host", "a.example.com", is_private=True)
    assert public.id != private.id
    assert Grant.from_id(private.id) == private


def test_a_file_whose_name_ends_like_a_private_host_is_a_file() -> None:
    assert Grant.from_id("read:/notes private") == Grant("read", "/notes private")


@pytest.mark.parametrize("text", ["", "host", "host:", "package:requests", "home:kept"])
def test_what_cannot_be_granted_is_told(text: str) -> None:
    with pytest.raises(ConfigurationError):
        Grant.from_id(text)


def test_only_hosts_are_private() -> None:
    with pytest.raises(ConfigurationError, match="Only a host"):
        Grant("read", "/data", is_private=True)


@pytest.mark.parametrize("kind", NEED_KINDS)
def test_a_need_says_what_would_meet_it_where_a_tick_can(kind: str) -> None:
    need = Need(kind, "thing", "declared", "SKILL.md:3")
    assert need.grant == (Grant(kind, "thing") if kind in GRANT_KINDS else None)


def test_a_need_of_unknown_kind_or_source_is_refused() -> None:
    with pytest.raises(ValueError, match="a need is one of"):
        Need("wish", "thing", "declared", "SKILL.md:3")
    with pytest.raises(ValueError, match="a need is one of"):
        Need("host", "thing", "guessed", "SKILL.md:3")


@pytest.mark.parametrize(("name", "is_offered"), [("*", False), ("*:8443", False), ("*.github.com", True)])
def test_a_host_without_a_name_is_no_tick(name: str, is_offered: bool) -> None:
    assert (Need("host", name, "inferred", "a.py:1").grant is not None) is is_offered


def test_a_grant_of_all_hosts_is_told_for_what_it_is() -> None:
    assert grant_label(Grant("host", "*")) == "any public host"
    assert grant_label(Grant("host", "*.github.com")) == "the host *.github.com"
