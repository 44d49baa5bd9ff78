from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.commands import BOUNDS

from skillkit import GUARDED, STANDARD, TRUSTED, ScriptPolicy
from skillkit.core.ask.reach import bounds_of, is_blocked, reach_marks, wall_sentences
from skillkit.core.values.policy import Limits


def sentences(
    policy: ScriptPolicy = GUARDED,
    tier: str = "bubblewrap",
    workspace: str | None = None,
    granted: Sequence[str] = (),
    timeout: float = 30,
    is_root: bool = False,
) -> tuple[str, ...]:
    return wall_sentences(
        policy,
        tier=tier,
        skill="/skills/demo",
        workspace=workspace,
        granted=granted,
        timeout=timeout,
        is_root=is_root,
    )


def test_the_walls_of_a_guarded_run() -> None:
    assert sentences() == (
        "It cannot use the network. What it starts itself it can reach, on a loopback of its own.",
        "It can read the system's programs and the skill /skills/demo, and change neither.",
        "It cannot read or write any other file of yours.",
        "It can write to a work folder of its own.",
        "It has a home folder of its own, which is kept for its next runs.",
        "It can start programs, up to 64 at a time, each with up to 1,024 MB of memory, 256 open files and 100 MB a file.",
        "Of your environment variables it gets the language and PATH, no secrets.",
        "After 30 seconds it is stopped, with everything it started.",
    )


def test_without_walls_nothing_is_promised() -> None:
    assert sentences(TRUSTED, "none") == (
        "No walls: it runs with your own rights.",
        "Of your environment variables it gets the language and PATH, no secrets.",
        "After 30 seconds it is stopped, with everything it started.",
    )
    for policy in (STANDARD, replace(STANDARD, allow_network=False)):
        assert not any("cannot" in each for each in sentences(policy, "none"))


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (replace(GUARDED, allow_network=True), "It can use the network: it can send what it reads to anybody."),
        (replace(GUARDED, readable_paths=(Path("/a"), Path("/b"))), "It can also read /a, /b."),
        (replace(GUARDED, writable_paths=(Path("/w"),)), "It can also read and write /w."),
        (
            replace(GUARDED, pass_environment=("A", "B")),
            "Of your environment variables it gets A, B, the language and PATH.",
        ),
        (replace(GUARDED, inherit_environment=True), "It gets your environment variables, secrets in them included."),
        (
            replace(GUARDED, allow_filesystem=True),
            "It can read and write your files. It cannot change the skill /skills/demo or what skillkit keeps.",
        ),
    ],
)
def test_what_a_policy_opens_is_said(policy: ScriptPolicy, sentence: str) -> None:
    assert sentence in sentences(policy)
    assert sentence not in sentences(GUARDED)


def test_no_variable_is_said_to_be_passed_that_never_is() -> None:
    mixed = replace(GUARDED, pass_environment=("LD_PRELOAD", "TEAM", "NODE_OPTIONS"))
    assert "Of your environment variables it gets TEAM, the language and PATH." in sentences(mixed)
    assert sentences(replace(GUARDED, pass_environment=("LD_PRELOAD",))) == sentences(GUARDED)
    assert bounds_of(mixed, None, tier="bubblewrap", is_root=False).variables == ("TEAM",)


def test_the_workspace_and_what_stays_closed_in_it() -> None:
    others, sentence = sorted(set(sentences(workspace="/work")) - set(sentences()), key=len)
    assert others.startswith("It cannot read or write any other file of yours, unless more than 200 of those")
    said = "It can read and write the workspace /work, but not change in it git and its hooks, pipelines of forges, "
    assert sentence.startswith(said)
    assert sentence.endswith("What it makes anew under such a name is moved away when it ends.")


def test_paths_that_arguments_grant_are_named_only_where_they_are_granted() -> None:
    said = "It can also read what the arguments name: /data/a.csv, /data/b.csv."
    granted = ("/data/a.csv", "/data/b.csv")
    assert said in sentences(granted=granted)
    assert said not in sentences(replace(GUARDED, grant_argument_paths=False), granted=granted)


def test_the_call_s_own_timeout_counts() -> None:
    assert sentences(timeout=2.5)[-1] == "After 2.5 seconds it is stopped, with everything it started."


@pytest.mark.parametrize("tier", ["seatbelt", "job"])
def test_walls_that_keep_no_limits_do_not_promise_any(tier: str) -> None:
    assert not any("up to" in each for each in sentences(TRUSTED, tier))
    assert any("not limited" in each for each in sentences(TRUSTED, tier))


def test_weaker_walls_say_what_can_be_seen_through_them() -> None:
    assert set(sentences(tier="landlock")) - set(sentences()) == {
        "It cannot use the network.",
        "It can see the names and sizes of other files, and the command lines of other programs.",
    }


def test_limits_are_the_policy_s_and_root_is_not_counted() -> None:
    policy = replace(GUARDED, limits=Limits(processes=3, data_megabytes=2))
    assert any("up to 3 at a time, each with up to 2 MB" in each for each in sentences(policy))
    assert any("any number at a time" in each for each in sentences(policy, is_root=True))


def test_where_only_the_processes_are_held_together_all_is_open_and_that_is_said() -> None:
    assert sentences(tier="job", granted=["/data"], workspace="/work") == (
        "It can use the network, and read and write every file that you can.",
        "Its memory and its files are not limited.",
        "Of your environment variables it gets the language and PATH, no secrets.",
        "After 30 seconds it is stopped, with everything it started.",
    )


def test_walls_that_hide_no_names_say_so() -> None:
    seen = {
        tier: [line for line in sentences(tier=tier) if "names and sizes" in line]
        for tier in ("bubblewrap", "landlock", "seatbelt")
    }
    assert seen == {
        "bubblewrap": [],
        "landlock": ["It can see the names and sizes of other files, and the command lines of other programs."],
        "seatbelt": ["It can see the names and sizes of other files."],
    }


@pytest.mark.parametrize(("count", "more"), [(63, ""), (64, ""), (65, " and 1 more"), (1064, " and 1,000 more")])
def test_more_paths_than_arguments_can_grant_are_counted(count: int, more: str) -> None:
    (line,) = (line for line in sentences(granted=[f"/{n}" for n in range(count)]) if "the arguments name" in line)
    assert line.endswith(f", /{min(count, 64) - 1}{more}.")


def test_a_run_with_hosts_can_send_what_its_home_keeps() -> None:
    kept = replace(GUARDED, allowed_hosts=("api.example.com",))
    assert any("It can send what it kept there." in sentence for sentence in sentences(kept))
    assert not any("It can send what it kept there." in sentence for sentence in sentences(GUARDED))


CLOSED = replace(BOUNDS, network=False, hosts=(), filesystem=False, workspace="", readable=(), writable=())
CLOSED = replace(CLOSED, tier="bubblewrap", variables=(), all_variables=False, secrets=(), home="kept")


def marks(granted: Sequence[str] = (), **opened: Any) -> list[tuple[str, str, str]]:
    found = reach_marks(replace(CLOSED, argument_paths=True, **opened), granted)
    return [(mark.name, mark.words, mark.state) for mark in found]


def test_the_marks_of_a_guarded_run() -> None:
    assert marks() == [
        ("network", "no network", "closed"),
        ("files", "no files", "closed"),
        ("keys", "no keys", "closed"),
        ("home", "own home, kept", "open"),
    ]


@pytest.mark.parametrize(
    ("opened", "mark"),
    [
        ({"network": True}, ("network", "any network", "wide")),
        ({"hosts": ("a.example",)}, ("network", "network: a.example", "open")),
        ({"hosts": ("a.example",), "tier": "landlock"}, ("network", "no network", "closed")),
        ({"workspace": "/work"}, ("files", "writes the workspace", "open")),
        ({"granted": ("/a", "/b")}, ("files", "reads /a and 1 more", "open")),
        ({"filesystem": True}, ("files", "all your files", "wide")),
        ({"variables": ("LEVEL",)}, ("keys", "gets LEVEL", "open")),
        ({"secrets": ("API_KEY",)}, ("keys", "gets API_KEY", "open")),
        ({"all_variables": True}, ("keys", "all your variables", "wide")),
        ({"home": "fresh"}, ("home", "fresh home", "closed")),
        ({"tier": "none"}, ("files", "all your files, no walls", "wide")),
    ],
)
def test_a_mark_says_how_far_it_is_open(opened: dict[str, Any], mark: tuple[str, str, str]) -> None:
    assert mark in marks(**opened)


EVERY_WALL = ("network", "home", "secrets", "writes", "programs", "variables", "variable TOKEN")


def test_every_wall_stands_where_nothing_is_open_and_none_without_walls() -> None:
    assert [wall for wall in EVERY_WALL if not is_blocked(wall, CLOSED)] == []
    assert [wall for wall in EVERY_WALL if is_blocked(wall, replace(CLOSED, tier="none"))] == []
    assert not is_blocked("", CLOSED)
    assert not is_blocked("something else", CLOSED)


@pytest.mark.parametrize(
    ("opened", "walls"),
    [
        ({"network": True}, ["network"]),
        ({"hosts": ("a.example",)}, ["network"]),
        ({"workspace": "/work"}, ["writes"]),
        ({"writable": ("/a",)}, ["home", "secrets", "writes"]),
        ({"readable": ("/a",)}, ["secrets"]),
        ({"filesystem": True}, ["home", "secrets", "writes"]),
        ({"tier": "landlock"}, ["programs"]),
        ({"variables": ("TOKEN",)}, ["variables", "variable TOKEN"]),
        ({"secrets": ("OTHER",)}, ["variables"]),
        ({"all_variables": True}, ["variables", "variable TOKEN"]),
    ],
)
def test_what_is_open_blocks_nothing(opened: dict[str, Any], walls: list[str]) -> None:
    assert [wall for wall in EVERY_WALL if not is_blocked(wall, replace(CLOSED, **opened))] == walls
