"""Whether a need is met here, and the one act that meets it."""

from __future__ import annotations

import dataclasses
import os
import shlex
from pathlib import Path

import pytest

from skillkit import GUARDED, TRUSTED, ScriptPolicy
from skillkit.core.find.needs import Surroundings, met, surroundings_here
from skillkit.core.values.needs import NEED_KINDS, Need

AROUND = Surroundings("my skill", GUARDED)


def remedy(kind: str, name: str, around: Surroundings = AROUND, **changes: object) -> str:
    around = dataclasses.replace(around, **changes)  # type: ignore[arg-type]
    [need] = met((Need(kind, name, "inferred", "a.py:1"),), around)
    assert need.is_met is (need.remedy == "")
    return need.remedy


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("host", "api.github.com", "skillkit grant 'my skill' --host api.github.com"),
        ("host", "*", "skillkit grant 'my skill' --host NAME for each host, or run it with --network"),
        ("host", "*.github.com", "skillkit grant 'my skill' --host '*.github.com'"),
        ("secret", "GITHUB_TOKEN", "skillkit secret set 'my skill' GITHUB_TOKEN"),
        ("variable", "MY_REGION", "export MY_REGION=..."),
        ("package", "pypdf", "skillkit prepare 'my skill'"),
        ("read", "~/Downloads/a b", "skillkit grant 'my skill' --read ~/'Downloads/a b'"),
        ("write", "/srv/x", "skillkit grant 'my skill' --write /srv/x"),
        ("interpreter", "pwsh", "install pwsh"),
        ("program", "ffmpeg", "install ffmpeg"),
    ],
)
def test_the_remedy_is_what_is_typed(kind: str, name: str, expected: str) -> None:
    assert remedy(kind, name) == expected


@pytest.mark.parametrize("name", ["~/.ssh/id_rsa", "~/.netrc", "~/.aws/credentials", "/etc/shadow", "~", "/"])
def test_no_command_is_told_for_a_place_that_is_never_opened(name: str) -> None:
    assert remedy("read", name) == f"nothing: {name} is never opened to scripts"


def test_every_kind_is_looked_at() -> None:
    needs = [Need(kind, "x", "inferred", "a:1") for kind in NEED_KINDS]
    assert len(met(needs, AROUND)) == len(NEED_KINDS)


@pytest.mark.parametrize("host", ["api.github.com", "x.api.github.com"])
@pytest.mark.parametrize(
    ("granted", "opens"),
    [
        ("host:api.github.com", ["api.github.com"]),
        ("host:api.github.com private", ["api.github.com"]),
        ("host:*.github.com", ["api.github.com", "x.api.github.com"]),
        ("host:*", ["api.github.com", "x.api.github.com"]),
        ("host:github.com", []),
        ("host:api.github.com:8443", []),
    ],
)
def test_a_granted_host_is_open_and_no_other(host: str, granted: str, opens: list[str]) -> None:
    assert (remedy("host", host, granted=frozenset((granted,))) == "") is (host in opens)


def test_an_unusual_port_is_open_only_where_it_is_named() -> None:
    assert remedy("host", "x.dev:8443", granted=frozenset(("host:x.dev", "host:*")))
    assert not remedy("host", "x.dev:8443", granted=frozenset(("host:x.dev:8443",)))


def test_a_key_that_is_set_here_has_still_to_be_granted() -> None:
    is_set = frozenset(("GITHUB_TOKEN",))
    assert remedy("secret", "GITHUB_TOKEN", environment=is_set) == "skillkit grant 'my skill' --secret GITHUB_TOKEN"
    assert remedy("secret", "GITHUB_TOKEN", stored=is_set) == "skillkit grant 'my skill' --secret GITHUB_TOKEN"
    assert not remedy("secret", "GITHUB_TOKEN", environment=is_set, granted=frozenset(("secret:GITHUB_TOKEN",)))
    passing = dataclasses.replace(GUARDED, pass_environment=("GITHUB_TOKEN",))
    assert not remedy("secret", "GITHUB_TOKEN", environment=is_set, policy=passing)


def test_without_walls_places_and_hosts_are_open() -> None:
    assert not remedy("host", "x.dev", policy=TRUSTED)
    assert not remedy("read", "/srv/x", policy=TRUSTED)


def test_typescript_runs_on_whichever_is_there() -> None:
    assert remedy("interpreter", "tsx", programs=frozenset(("bun",))) == "skillkit grant 'my skill' --interpreter bun"
    listed = dataclasses.replace(GUARDED, allowed_interpreters=("bun",))
    assert not remedy("interpreter", "tsx", programs=frozenset(("bun",)), policy=listed)
    assert not remedy("interpreter", "tsx", runs_types=True)


def test_a_known_program_is_installed_by_its_package() -> None:
    assert remedy("program", "pdftotext", programs=frozenset(("apt-get",))) == "apt install poppler-utils"
    assert remedy("program", "odd-tool", programs=frozenset(("apt-get",))) == "install odd-tool"
    assert not remedy("program", "odd-tool", programs=frozenset(("odd-tool",)))


def test_landlock_keeps_loopback_closed() -> None:
    assert remedy("loopback", "localhost", tier="landlock")
    assert not remedy("loopback", "localhost", tier="bubblewrap")


def test_a_skills_name_cannot_add_words_to_a_command() -> None:
    around = Surroundings("x; rm -rf ~", ScriptPolicy())
    for kind, name in (("host", "a.dev"), ("package", "x"), ("secret", "X_TOKEN"), ("read", "~/$(id)")):
        words = shlex.split(remedy(kind, name, around))
        assert "x; rm -rf ~" in words
        assert "rm" not in words


def test_this_machine_is_looked_at_by_listing(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("python3", "mytool"):
        (tools / name).write_text("")
        (tools / name).chmod(0o755)
    (tmp_path / "pyvenv.cfg").write_text("")
    (tmp_path / "lib" / "python3.12" / "site-packages" / "PyYAML-6.0.dist-info").mkdir(parents=True)
    (tmp_path / "skill" / "node_modules" / "@a" / "b").mkdir(parents=True)
    own = {"PATH": str(tools), "X_TOKEN": "value"}
    around = surroundings_here("x", GUARDED, folder=tmp_path / "skill", environment=own)
    assert around.programs == {"python3", "mytool"}
    assert around.packages >= {"pyyaml", "npm:@a/b"}
    assert around.environment == {"PATH", "X_TOKEN"}
    assert "value" not in repr(around)
    assert os.sep not in "".join(around.programs)
