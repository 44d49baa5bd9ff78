from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.skill_folders import skill_folder

from skillkit import FilePathResolver, PathSecurityError
from skillkit.core.paths import is_inside


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill with links of every kind, and a secret next to it."""
    folder = skill_folder(tmp_path, "skill", files={"scripts/deep/run.py": "", "a b (1) [x].txt": "", "ünï/文.md": ""})
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "skill-twin").mkdir()
    (tmp_path / "skill-twin" / "secret.txt").write_text("secret")
    (folder / "out").symlink_to(tmp_path / "secret.txt")
    (folder / "up").symlink_to("..")
    (folder / "inner").symlink_to("scripts/deep")
    (folder / "around").symlink_to("../skill/scripts")
    (folder / "loop").symlink_to("loop")
    (folder / "ping").symlink_to("pong")
    (folder / "pong").symlink_to("ping")
    (folder / "broken").symlink_to("nowhere")
    (folder / "broken-out").symlink_to("../nowhere")
    return folder


@pytest.mark.parametrize(
    ("relative", "expected"),
    [
        ("scripts/deep/run.py", "scripts/deep/run.py"),
        ("./scripts//deep/../deep/run.py", "scripts/deep/run.py"),
        ("a b (1) [x].txt", "a b (1) [x].txt"),
        ("ünï/文.md", "ünï/文.md"),
        ("inner/run.py", "scripts/deep/run.py"),
        ("around/deep/run.py", "scripts/deep/run.py"),
        ("../skill/SKILL.md", "SKILL.md"),
        ("broken", "nowhere"),
        ("not/there/yet", "not/there/yet"),
        ("..dots", "..dots"),
        ("back\\slash", "back\\slash"),
        ("", "."),
        (".", "."),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="POSIX spelling of paths")
def test_a_path_that_stays_inside_is_resolved(skill: Path, relative: str, expected: str) -> None:
    assert FilePathResolver.resolve_path(skill, relative) == Path(os.path.realpath(skill)) / expected


@pytest.mark.parametrize(
    ("relative", "reason"),
    [
        ("..", "it leads to"),
        ("../secret.txt", "it leads to"),
        ("../skill-twin/secret.txt", "it leads to"),
        ("scripts/../../secret.txt", "it leads to"),
        ("not-there/../../secret.txt", "it leads to"),
        ("out", "it leads to"),
        ("up", "it leads to"),
        ("up/secret.txt", "it leads to"),
        ("up/up/up", "it leads to"),
        ("broken-out", "it leads to"),
        ("loop", "loop of links"),
        ("loop/x", "loop of links"),
        ("ping", "loop of links"),
        ("/etc/passwd", "it is absolute"),
        ("//etc/passwd", "it is absolute"),
        ("a\0b", "no usable path"),
        ("\0", "no usable path"),
        ("\ud800", "no usable path"),
    ],
)
def test_a_path_that_may_leave_is_refused(skill: Path, relative: str, reason: str) -> None:
    with pytest.raises(PathSecurityError, match=reason):
        FilePathResolver.resolve_path(skill, relative)


def test_the_absolute_path_of_a_file_inside_is_refused_too(skill: Path) -> None:
    with pytest.raises(PathSecurityError, match="it is absolute"):
        FilePathResolver.resolve_path(skill, str(skill / "SKILL.md"))


def test_a_chain_of_a_thousand_links_is_refused_and_does_not_crash(tmp_path: Path) -> None:
    for number in range(1500):
        (tmp_path / f"link{number}").symlink_to(f"link{number + 1}")
    with pytest.raises(PathSecurityError, match=r"no usable path|a loop of links"):
        FilePathResolver.resolve_path(tmp_path, "link0")


def test_a_base_that_is_itself_a_link_is_followed_first(skill: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(skill)
    resolved = FilePathResolver.resolve_path(tmp_path / "alias", "SKILL.md")
    assert resolved == Path(os.path.realpath(skill)) / "SKILL.md"


def test_a_base_with_a_nul_is_refused() -> None:
    with pytest.raises(PathSecurityError, match="no usable path"):
        FilePathResolver.resolve_path("a\0b", "x")


def test_a_refusal_is_on_the_security_log_with_what_was_asked(skill: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "skillkit.security"), pytest.raises(PathSecurityError, match="absolute") as e:
        FilePathResolver.resolve_path(skill, "/etc/passwd")
    base = os.path.realpath(skill)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("skillkit.security", "WARNING")
    assert (record.__dict__["requested_path"], record.__dict__["base_directory"]) == ("/etc/passwd", base)
    assert (e.value.requested_path, e.value.base_directory) == ("/etc/passwd", Path(base))


def test_what_is_allowed_leaves_no_trace_on_the_security_log(skill: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        FilePathResolver.resolve_path(skill, "SKILL.md")
    assert caplog.records == []


def test_a_link_cannot_write_lines_of_its_own_into_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = skill_folder(tmp_path, "skill")
    (tmp_path / "a\nWARNING forged line").mkdir()
    (folder / "out").symlink_to("../a\nWARNING forged line")
    with pytest.raises(PathSecurityError, match="it leads to") as refused:
        FilePathResolver.resolve_path(folder, "out")
    assert "\n" not in str(refused.value)
    assert "\n" not in caplog.records[0].getMessage()


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b/c", "/a/b", True),
        ("/a/bc", "/a/b", False),
        ("/a", "/a/b", False),
        ("/a", "/", True),
        ("/", "/", True),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="POSIX spelling of paths")
def test_inside_is_decided_by_whole_names(path: str, folder: str, expected: bool) -> None:
    assert is_inside(path, folder) is expected


def test_a_refused_path_prints_nothing_in_a_program_without_logging(tmp_path: Path) -> None:
    code = (
        "from skillkit import FilePathResolver, PathSecurityError\n"
        "try:\n    FilePathResolver.resolve_path('.', '../x')\nexcept PathSecurityError:\n    print('refused')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("refused\n", "")
