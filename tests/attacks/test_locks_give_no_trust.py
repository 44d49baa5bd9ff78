"""`skills.lock` is a file that anybody may edit: what it names is fetched and checked, never trusted and never run."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from support.repositories import Repository

from skillkit.cli.main import exit_code_of
from skillkit.core.paths.guarded_names import is_guarded_name

RUN = '#!/bin/sh\necho ran > "$1"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.add_skill("demo", {"scripts/run.sh": "#!/bin/sh\necho good\n"})
    return made


def skillkit(*words: str) -> int:
    return exit_code_of(list(words))


def edit_lock(project: Path, evil: Repository, capfd: pytest.CaptureFixture[str], at: Path) -> None:
    """As an attacker does who may change the file: source, commit and digest of a skill of their own, consistently."""
    at.mkdir()
    here = os.getcwd()
    os.chdir(at)
    assert skillkit("add", evil.url) == 0
    capfd.readouterr()
    os.chdir(here)
    (project / "skills.lock").write_text((at / "skills.lock").read_text())


def test_an_edited_lock_runs_nothing_and_gives_no_trust(
    repository: Repository, project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert skillkit("add", repository.url) == 0
    assert skillkit("trust", "add", "--locked", "--yes") == 0
    assert skillkit("run", "demo", "run") == 0, "control: what a person trusted runs without a question"
    evil = Repository(tmp_path / "evil")
    evil.add_skill("demo", {"scripts/run.sh": RUN})
    edit_lock(project, evil, capfd, tmp_path / "attacker")
    assert skillkit("sync", "--frozen") == 0, "the lock is obeyed"
    assert "echo ran" in (project / "skills/demo/scripts/run.sh").read_text()
    mark = tmp_path / "mark"
    assert skillkit("run", "demo", "run", "--", str(mark)) == 126, "and what it brought is asked about"
    assert not mark.exists()
    capfd.readouterr()
    assert skillkit("trust", "list", "--json") == 0
    assert [each["now"] for each in json.loads(capfd.readouterr().out)["trusted"]] == ["changed"]


def test_what_is_not_as_locked_is_not_trusted_by_the_lock(
    repository: Repository, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert skillkit("add", repository.url) == 0
    (project / "skills/demo/scripts/run.sh").write_text(RUN)
    assert skillkit("trust", "add", "--locked", "--yes") == 126
    assert "'demo' is not trusted: its digest is" in capfd.readouterr().err


def test_without_a_yes_the_lock_is_not_trusted(
    repository: Repository,
    project: Path,  # noqa: ARG001 - it is where we stand
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert skillkit("add", repository.url) == 0
    assert skillkit("trust", "add", "--locked") == 126
    assert skillkit("run", "demo", "run") == 126


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("source", "ext::sh -c touch% mark"),
        ("source", "--upload-pack=touch mark"),
        ("ref", "--upload-pack=touch mark"),
        ("path", "../../.."),
        ("folder", "../../.ssh"),
        ("folder", "/etc"),
        ("folder", ".git/hooks"),
        ("digest", "*"),
        ("commit", "HEAD"),
        ("approved", "yes"),
    ],
)
def test_a_lock_with_words_of_its_own_is_no_lock(
    repository: Repository, project: Path, capfd: pytest.CaptureFixture[str], key: str, value: str
) -> None:
    assert skillkit("add", repository.url) == 0
    lock = project / "skills.lock"
    lines = [line for line in lock.read_text().splitlines() if not line.startswith(f"{key} =")]
    lock.write_text("\n".join([*lines, f"{key} = {json.dumps(value)}"]))
    before = sorted(os.listdir(project))
    for command in (["sync"], ["sync", "--frozen", "--discard"], ["sync", "--check"], ["update"], ["remove", "demo"]):
        assert skillkit(*command) == 125, command
        assert "is no lock" in capfd.readouterr().err
    assert sorted(os.listdir(project)) == before


def test_a_name_in_a_lock_is_no_path(repository: Repository, project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert skillkit("add", repository.url) == 0
    lock = project / "skills.lock"
    lock.write_text(lock.read_text().replace("[skill.demo]", '[skill."../../planted"]'))
    assert skillkit("sync") == 125
    assert "is no name for a skill" in capfd.readouterr().err


def test_a_script_cannot_write_the_lock() -> None:
    assert is_guarded_name("skills.lock")
    assert is_guarded_name("Skills.Lock")


def test_a_lock_that_is_a_link_is_not_followed(repository: Repository, project: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    (project / "skills.lock").symlink_to(target)
    assert skillkit("add", repository.url) == 125
    assert target.read_text() == "mine"
    assert not (project / "skills").exists()
