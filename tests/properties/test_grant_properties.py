"""However grants are combined, none opens a closed place or another's key, and none outlives a change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.commands import BOUNDS
from support.running import made_manager

from skillkit import GUARDED, ConfigurationError, Grant, SkillManager
from skillkit.core.paths import is_inside, real_path
from skillkit.core.paths.forbidden import forbidden_paths
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.grants import widened
from skillkit.core.values.needs import GRANT_KINDS
from skillkit.core.values.policy import loosenings

PROPERTY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
POLICY = replace(GUARDED, approval="never")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SkillManager, Path]]:
    folder = tmp_path_factory.mktemp("grants").resolve()
    home = folder / "home"
    for place in (".ssh", ".aws", "docs", "docs/deep"):
        (home / place).mkdir(parents=True)
    (home / "docs/link").symlink_to(home / ".ssh")
    (folder / "secrets/other").mkdir(parents=True)
    (folder / "secrets/other/KEY").write_text("x")
    (folder / "data/inner").mkdir(parents=True)
    (folder / "data/out").symlink_to("/etc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKILLKIT_SECRETS_DIR", str(folder / "secrets"))
        with made_manager(folder, {"scripts/run.sh": "echo ran\n"}, policy=POLICY) as manager:
            (manager.state_dir / "homes/other").mkdir(parents=True)
            yield manager, folder


@pytest.fixture(autouse=True)
def own_home(world: tuple[SkillManager, Path], private_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the one that every test gets: what lies around it is closed too."""
    del private_home
    monkeypatch.setenv("HOME", str(world[1] / "home"))


PLACES = (
    *("~", "~/.ssh", "~/.aws/x", "~/docs", "~/docs/deep", "~/docs/link", "/", "/etc", "/proc/self", "/home", "/root"),
    *("{0}/data", "{0}/data/inner", "{0}/data/out", "{0}/data/out/passwd", "{0}/state", "{0}/state/homes/other", "{0}"),
    *("{0}/secrets", "{0}/secrets/other", "{0}/secrets/other/KEY", "{0}/data/../secrets/other/KEY", "{0}/home", "."),
)
NAMES = ("API_KEY", "TEAM", "PATH", "HOME", "LD_PRELOAD", "https_proxy", "SKILL_NAME", "PYTHONPATH", "A B", "x" * 150)
GRANTS = st.one_of(
    st.builds(lambda kind, name: (kind, name), st.sampled_from(["read", "write"]), st.sampled_from(PLACES)),
    st.builds(lambda kind, name: (kind, name), st.sampled_from(["secret", "variable"]), st.sampled_from(NAMES)),
    st.builds(lambda name: ("interpreter", name), st.sampled_from(["bun", "bash", "/bin/sh", "sudo", "cmd"])),
    st.builds(lambda name: ("working_directory", name), st.sampled_from(["skill", "workspace", "/", ".."])),
    st.builds(lambda name: ("host", name), st.sampled_from(["*", "a.example", "*.b.example", "127.0.0.1", "x y"])),
)


@PROPERTY
@given(wanted=st.lists(GRANTS, min_size=1, max_size=6))
def test_no_combination_opens_a_closed_place_or_a_name_that_steers(
    world: tuple[SkillManager, Path], wanted: list[tuple[str, str]]
) -> None:
    manager, folder = world
    closed = forbidden_paths(manager.state_dir)
    kept: tuple[Grant, ...] = ()
    for kind, name in wanted:
        try:
            kept += tuple(
                each.grant
                for each in manager.flow.granting.give(
                    manager.load_skill("demo"), [Grant(kind, name.format(folder))], "test"
                )
            )
        except ConfigurationError:
            continue
    try:
        policy = widened(POLICY, manager.grants("demo"))
        for path in (*policy.readable_paths, *policy.writable_paths):
            assert not closed.covers(real_path(path)), path
            assert not is_inside(real_path(path), str(folder / "secrets"))
            assert not is_inside(real_path(path), real_path(manager.state_dir))
        assert {*policy.pass_environment} <= {"API_KEY", "TEAM"}
        assert (policy.allow_network, policy.allow_filesystem, policy.inherit_environment) == (False, False, False)
        opened = {each.key.removeprefix("policy.") for each in loosenings(POLICY, policy)}
        assert opened <= {
            "allowed_hosts",
            "pass_environment",
            "readable_paths",
            "writable_paths",
            "allowed_interpreters",
            "working_directory",
        }
        script = folder / "skills/demo/scripts/run.sh"
        script.write_text("echo changed\n")
        assert manager.grants("demo") == ()
        script.write_text("echo ran\n")
        assert set(manager.grants("demo")) <= set(kept)
    finally:
        manager.revoke("demo")


SAFE = st.lists(
    st.sampled_from(
        [
            Grant("secret", "A_KEY"),
            Grant("variable", "TEAM"),
            Grant("read", "/data"),
            Grant("write", "/out"),
            Grant("host", "a.example"),
            Grant("interpreter", "bun"),
            Grant("working_directory", "workspace"),
        ]
    ),
    unique=True,
)


@PROPERTY
@given(given=SAFE, more=SAFE, kinds=st.lists(st.sampled_from(GRANT_KINDS), unique=True))
def test_walls_with_grants_hold_what_they_give_and_nothing_more(
    given: list[Grant], more: list[Grant], kinds: list[str]
) -> None:
    walls = BOUNDS.with_grants(given)
    assert walls.hold(walls)
    assert Bounds.from_text(walls.to_text()) == walls
    beyond = [grant for grant in more if grant not in given]
    assert walls.hold(walls.with_grants(beyond)) is (not beyond or beyond == [Grant("interpreter", "bun")])
    narrow = replace(GUARDED, grantable=tuple(kinds))
    usable = [grant for grant in given if grant.kind in kinds]
    assert widened(narrow, given) == widened(narrow, usable)
