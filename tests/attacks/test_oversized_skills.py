"""Skills that are too deep, too many or too large: an error that says so, never a crash or a full disk."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.running import kinds, made_manager, only_record
from support.skill_folders import skill_folder

from skillkit import GUARDED, STANDARD, TRUSTED, ScriptPolicy, SizeLimitExceededError, SkillKitError, SkillManager
from skillkit.cli.main import cli
from skillkit.core.models import digest
from skillkit.core.values.runs import Decision
from skillkit.integrations.functions import SkillFunctions
from skillkit.testing import ScriptedApprover

# What a person approved always runs from a copy.
ASKED = replace(STANDARD, approval="first_run")
POLICIES = [pytest.param(policy, id=name) for name, policy in (("trusted", TRUSTED), ("standard", STANDARD))]


@pytest.fixture(autouse=True)
def nothing_deep_is_left(tmp_path: Path) -> Iterator[None]:
    """This Python cannot remove what is deeper than it can go."""
    yield
    for name in ("skills", "d"):
        remove(tmp_path / name)


def dig(folder: Path, depth: int) -> None:
    """Step by step: a path that long could be too long."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("end.sh", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


@pytest.fixture
def deep(tmp_path: Path) -> SkillManager:
    manager = made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=STANDARD)
    dig(tmp_path / "skills/demo/references", 1_100)
    return manager


def remove(folder: Path) -> None:
    subprocess.run(["rm", "-rf", folder], check=True)


def test_control_plain_means_cannot_even_make_such_a_tree(tmp_path: Path) -> None:
    with pytest.raises(RecursionError):
        tmp_path.joinpath(*["d"] * 1_100).mkdir(parents=True)


@pytest.mark.parametrize("policy", [TRUSTED, STANDARD, GUARDED], ids=["trusted", "standard", "guarded"])
@pytest.mark.parametrize("where", ["scripts", "references", ".hidden", "."])
def test_a_skill_that_is_too_deep_is_refused_with_the_limit_and_on_record(
    tmp_path: Path, policy: ScriptPolicy, where: str
) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=policy) as manager:
        dig(tmp_path / "skills/demo" / where, digest.SKILL_DEPTH + 1)
        prepared = manager.prepare_skill_script("demo", "run")
        assert (prepared.decision, type(prepared.error)) == (Decision.DENY, SizeLimitExceededError)
        with pytest.raises(SizeLimitExceededError, match=r"more than 100 deep.*Move what") as caught:
            manager.execute_skill_script("demo", "run")
        assert caught.value.limit == digest.SKILL_DEPTH
        assert [script.name for script in manager.load_skill("demo").scripts] == ["run"]
        assert "Do it." in manager.invoke_skill("demo")
    assert kinds(tmp_path) == ["refused"]
    assert only_record(tmp_path, "refused")["error"] == "SizeLimitExceededError"


def test_a_deep_skill_crashes_neither_tools_nor_commands(deep: SkillManager, tmp_path: Path) -> None:
    with deep:
        assert isinstance(deep.prepare_skill_script("demo", "run").error, SizeLimitExceededError)
        functions = SkillFunctions(deep)
        for name, arguments in (
            ("load_skill", {"skill_name": "demo"}),
            ("skills_run_script", {"skill_name": "demo", "script": "run"}),
            ("read_skill_file", {"skill_name": "demo", "path": "missing.txt"}),
        ):
            assert isinstance(functions.call(name, arguments).content, str)
    places = ["--skills", str(tmp_path / "skills"), "--state-dir", str(tmp_path / "state")]
    for words in (["show", "demo"], ["check", "demo", "run"], ["list"], ["trust", "add", "demo", "--yes"]):
        ended = CliRunner().invoke(cli, [*words, *places])
        assert ended.exception is None or isinstance(ended.exception, SystemExit | SkillKitError), words
    validated = CliRunner().invoke(cli, ["validate", str(tmp_path / "skills")])
    assert validated.exception is None or isinstance(validated.exception, SystemExit)


def test_a_depth_within_the_limit_runs(tmp_path: Path) -> None:
    for policy in (TRUSTED, STANDARD):
        with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=policy) as manager:
            if policy is TRUSTED:
                dig(tmp_path / "skills/demo/references", digest.SKILL_DEPTH - 1)
            assert manager.execute_skill_script("demo", "run").stdout == "ran\n"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_chain_of_a_thousand_links_is_left_out_and_the_rest_runs(tmp_path: Path, policy: ScriptPolicy) -> None:
    base = skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": "echo ran\n"})
    for number in range(1_200):
        (base / f"scripts/l{number}.sh").symlink_to(f"l{number + 1}.sh")
    (base / "scripts/l1200.sh").symlink_to("run.sh")
    with made_manager(tmp_path, policy=policy) as manager:
        assert manager.execute_skill_script("demo", "scripts/run.sh").stdout == "ran\n"
        names = {script.name for script in manager.load_skill("demo").scripts}
        assert {"run", "l1200"} <= names
        assert "l0" not in names


@pytest.mark.parametrize("policy", POLICIES)
def test_ten_thousand_files_run(tmp_path: Path, policy: ScriptPolicy) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=policy) as manager:
        (tmp_path / "skills/demo/assets").mkdir()
        for number in range(10_000):
            (tmp_path / f"skills/demo/assets/{number}").touch()
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["files", "folders", "links"])
def test_more_entries_than_a_skill_may_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: ScriptPolicy, kind: str
) -> None:
    monkeypatch.setattr(digest, "SKILL_ENTRIES", 50)
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=policy) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"
        for number in range(50):
            path = tmp_path / f"skills/demo/{number}"
            if kind == "links":
                path.symlink_to("x")
            else:
                (path.mkdir if kind == "folders" else path.touch)()
        with pytest.raises(SizeLimitExceededError, match=r"more than 50 files, links and folders") as caught:
            manager.execute_skill_script("demo", "run")
        assert caught.value.limit == 50


@pytest.mark.parametrize("policy", POLICIES)
def test_a_file_with_a_hole_larger_than_a_skill_is_refused_before_it_is_read(
    tmp_path: Path, policy: ScriptPolicy
) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=policy) as manager:
        (tmp_path / "skills/demo/hole").touch()
        os.truncate(tmp_path / "skills/demo/hole", 1 << 40)
        with pytest.raises(SizeLimitExceededError, match=r"more than 1,000,000,000 bytes"):
            manager.execute_skill_script("demo", "run")


def test_a_hole_takes_no_room_in_the_state(tmp_path: Path) -> None:
    with made_manager(
        tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=ASKED, approver=ScriptedApprover("yes_once")
    ) as manager:
        (tmp_path / "skills/demo/hole").touch()
        os.truncate(tmp_path / "skills/demo/hole", 150_000_000)
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"
    (copy,) = (tmp_path / "state/snapshots").glob("*/hole")
    assert copy.stat().st_size == 150_000_000
    used = subprocess.run(["du", "-sk", tmp_path / "state"], capture_output=True, text=True, check=True).stdout
    assert int(used.split()[0]) < 2_000


def test_what_is_in_git_does_not_count(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}) as manager:
        dig(tmp_path / "skills/demo/.git", 150)
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"


def test_forty_edits_of_a_large_skill_leave_a_few_copies(tmp_path: Path) -> None:
    approver = ScriptedApprover(*["yes_once"] * 40)
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}, policy=ASKED, approver=approver) as manager:
        for number in range(40):
            (tmp_path / "skills/demo/data").write_bytes(os.urandom(100_000) + bytes([number]))
            assert manager.execute_skill_script("demo", "run").stdout == "ran\n"
    copies = [each for each in (tmp_path / "state/snapshots").iterdir() if each.is_dir() and each.name != ".uses"]
    assert len(copies) == 4


def test_show_gives_the_digest_that_approvals_are_about(tmp_path: Path, deep: SkillManager) -> None:
    places = ["--skills", str(tmp_path / "skills"), "--state-dir", str(tmp_path / "state")]
    too_deep = json.loads(CliRunner().invoke(cli, ["show", "demo", "--json", *places]).output)
    assert too_deep["digest"] is None
    remove(tmp_path / "skills/demo/references")
    skill = deep.load_skill("demo")
    shown = json.loads(CliRunner().invoke(cli, ["show", "demo", "--json", *places]).output)
    assert shown["digest"] == skill.digest == digest.manifest_of(skill.base_directory).digest
    assert skill.digest in CliRunner().invoke(cli, ["show", "demo", *places]).output
    before = skill.digest
    (skill.base_directory / "new").touch()
    assert skill.digest != before
