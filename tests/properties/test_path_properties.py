from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from skillkit import FilePathResolver, PathSecurityError
from skillkit.core.paths import is_inside

SECRET = "the secret outside"
PARTS = [
    ".", "..", "/", "//", "\\", "..\\", "\0", "~", "*", " ", "é", "e\u0301", "文", "\u202e", "\u2215", "\uff0e\uff0e",
    "\ud800", "\udcff", "%2e%2e", "%00", "C:", "a" * 255, "a" * 300, "SKILL.md", "scripts", "run.py", "inside", "deep",
    "out", "out-file", "up", "root", "loop", "ping", "pong", "broken", "broken-out", "hop", "absolute", "secret.txt",
    "skill", "skill-twin", "nothing",
]  # fmt: skip


@pytest.fixture(scope="module")
def skill() -> Iterator[Path]:
    """A skill full of links: inside, out, up, in circles, through each other; secrets all around it."""
    with tempfile.TemporaryDirectory() as folder:
        world = Path(folder).resolve()
        base = world / "skill"
        (base / "scripts" / "deep").mkdir(parents=True)
        (world / "skill-twin").mkdir()
        for place in (world, world / "skill-twin"):
            for name in ("secret.txt", "run.py", "SKILL.md"):
                (place / name).write_text(SECRET)
        for place in (base / "SKILL.md", base / "scripts" / "run.py", base / "scripts" / "deep" / "run.py"):
            place.write_text("inside")
        for place in (base, base / "scripts", base / "scripts" / "deep"):
            up = os.path.relpath(world, place)
            for name, target in (
                ("inside", os.path.relpath(base / "scripts" / "deep", place)),
                ("out", f"{up}/skill-twin"),
                ("out-file", f"{up}/secret.txt"),
                ("up", ".."),
                ("root", os.path.relpath(base, place)),
                ("absolute", str(world / "secret.txt")),
                ("loop", "loop"),
                ("ping", "pong/x"),
                ("pong", "ping/../up"),
                ("broken", "nowhere"),
                ("broken-out", f"{up}/nowhere"),
                ("hop", "out/../skill/scripts"),
            ):
                (place / name).symlink_to(target)
        yield base


def assert_contained(base: Path, requested: str) -> None:
    """The oracle: refused, or a path whose own real path is itself, inside, and never shows a secret."""
    try:
        resolved = FilePathResolver.resolve_path(base, requested)
    except PathSecurityError:
        return
    assert resolved.is_absolute()
    assert os.path.realpath(resolved) == str(resolved)
    assert is_inside(str(resolved), os.path.realpath(base))
    with contextlib.suppress(OSError):
        assert resolved.read_text() != SECRET


BOUNDED = settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@BOUNDED
@given(parts=st.lists(st.sampled_from(PARTS), max_size=8), separator=st.sampled_from(["/", "", "//", "/./"]))
@example(parts=["loop", "..", "up", "secret.txt"], separator="/")
@example(parts=["ping", "..", "out-file"], separator="/")
@example(parts=["loop", "..", "..", "secret.txt"], separator="/")
@example(parts=["nothing", "..", "out", "secret.txt"], separator="/")
@example(parts=["hop", "..", "..", "secret.txt"], separator="/")
@example(parts=["root", "up", "skill", "up", "secret.txt"], separator="/")
def test_no_combination_of_names_escapes(skill: Path, parts: list[str], separator: str) -> None:
    assert_contained(skill, separator.join(parts))


@BOUNDED
@given(requested=st.text(st.characters() | st.characters(categories=["Cs"]) | st.sampled_from("./\\\0~"), max_size=60))
def test_no_text_escapes(skill: Path, requested: str) -> None:
    assert_contained(skill, requested)


@settings(BOUNDED, max_examples=200)
@given(part=st.sampled_from(PARTS), times=st.integers(1, 2000), tail=st.sampled_from(PARTS))
def test_no_long_path_escapes(skill: Path, part: str, times: int, tail: str) -> None:
    assert_contained(skill, f"{part}/" * times + tail)


@settings(BOUNDED, max_examples=300)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=6), below=st.sampled_from(["scripts", "scripts/deep", "inside"]))
def test_nothing_escapes_a_base_that_lies_deeper(skill: Path, parts: list[str], below: str) -> None:
    assert_contained(skill / below, "/".join(parts))


def test_the_oracle_sees_an_escape(skill: Path) -> None:
    """A positive control: joining the paths without the resolver shows the secret."""
    assert (skill / "out-file").read_text() == SECRET
    assert (skill / "up" / "secret.txt").read_text() == SECRET
