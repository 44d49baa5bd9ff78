"""Which paths a call's arguments name, in what spellings, and which of them stay closed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from skillkit.core.resolve.arguments import (
    JSON_LIMIT_BYTES,
    LOOKED_AT,
    NAMED,
    ArgumentPaths,
    Surroundings,
    argument_paths,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with a key, some data, a skill and a workspace."""
    home = Path(os.path.realpath(tmp_path)) / "users" / "me"
    for name in (".ssh", "data", "skills/demo/scripts", "work/sub"):
        (home / name).mkdir(parents=True)
    for name in (".ssh/id_rsa", "data/a b.csv", "data/a.csv", "data/x=y", "skills/demo/scripts/run.sh", "work/in.txt"):
        (home / name).write_text("x")
    monkeypatch.setenv("HOME", str(home))
    return home


def around(home: Path, **changes: object) -> Surroundings:
    fields: dict[str, object] = {"skill": home / "skills/demo", "workspace": home / "work", **changes}
    fields.setdefault("cwd", fields["skill"])
    return Surroundings(**fields)  # type: ignore[arg-type]  # a table of fields


def named(home: Path, *words: str, **changes: object) -> ArgumentPaths:
    return argument_paths(None, words, None, around(home, **changes))


@pytest.mark.parametrize(
    "form",
    [
        *("{0}", "--file={0}", "file={0}", "-I{0}", "@{0}", "--data=@{0}", "-F@{0}", "-Fname=@{0}", "--a=b={0}"),
        *("file://{0}", "file://localhost{0}", "file:{0}", "FILE://{0}", "--url=file://{0}", "file://{0}?x#y"),
        *("/{0}", "//{0}", "~/data/a.csv", "--file=~/data/a.csv", "@~/data/a.csv"),
        *("../../data/a.csv", "--file=../../data/a.csv", "-I../../data/a.csv", "scripts/../../../data/a.csv"),
        *("file://{1}", "../data/a.csv", "{2}/../data/./a.csv"),
    ],
)
def test_a_path_is_recognised_in_many_spellings(home: Path, form: str) -> None:
    path = home / "data/a.csv"
    text = form.format(path, str(path).replace("a", "%61"), home / "work")
    assert named(home, text).paths == (str(path),)


def test_a_folder_may_be_written_with_a_slash_at_its_end(home: Path) -> None:
    assert named(home, f"{home}/data/").paths == (f"{home}/data",)


def test_a_path_may_hold_spaces_and_equal_signs(home: Path) -> None:
    assert named(home, f"{home}/data/a b.csv", f"--file={home}/data/x=y", f"file://{home}/data/a%20b.csv").paths == (
        f"{home}/data/a b.csv",
        f"{home}/data/x=y",
    )


@pytest.mark.parametrize(
    "text",
    [
        *("a.csv", "", "-", "--", "-x", "=", "@", "/nowhere/at/all", "/\0", "http://host/usr", "x" * 100_000),
        *("~nobody-of-this-name/x", "~\ud800/x", "\udcff", "file:", "see /usr for more", "/usr /bin"),
        *("/dev/null", "--log=/dev/stderr", "//dev/stdin", "/dev/./zero"),
    ],
)
def test_other_text_names_no_path(home: Path, text: str) -> None:
    assert named(home, text) == ArgumentPaths()


@pytest.mark.parametrize("text", ["scripts/run.sh", ".", "{0}/skills/demo", "in.txt", "sub/../in.txt", "{0}/work/sub"])
def test_what_skill_and_workspace_hold_is_left_out(home: Path, text: str) -> None:
    assert named(home, text.format(home)) == ArgumentPaths()


def test_relative_paths_start_from_where_the_script_works(home: Path) -> None:
    assert named(home, "../data/a.csv", workspace=None).paths == ()
    assert named(home, "../../data/a.csv", workspace=None).paths == (f"{home}/data/a.csv",)
    (home / "work/deep/deeper").mkdir(parents=True)
    assert named(home, "../../../data/a.csv", cwd=home / "work/deep/deeper").paths == (f"{home}/data/a.csv",)


def test_texts_are_found_wherever_they_are_in_the_arguments(home: Path) -> None:
    one, two, three, four = (str(home / "data" / str(number)) for number in range(4))
    for path in (one, two, three, four):
        Path(path).write_text("x")
    arguments = {"a": [1, None, {"b": [[two]]}], three: True, "c": 1.5}
    found = argument_paths(arguments, [one], None, around(home))
    assert set(found.paths) == {one, two, three}
    for stdin in (json.dumps([arguments]), b" \n" * 2000 + json.dumps(four).encode(), f'\ufeff{{"x": "{four}"}}'):
        assert argument_paths(None, (), stdin, around(home)).paths, stdin


@pytest.mark.parametrize("stdin", ["", b"", "plain /usr text", "{not json", b"[\xff]", "/usr", "12"])
def test_stdin_that_is_no_json_names_nothing(home: Path, stdin: str | bytes) -> None:
    assert argument_paths(None, (), stdin, around(home)) == ArgumentPaths()


def test_what_is_too_much_to_look_at_is_said(home: Path) -> None:
    path = str(home / "data/a.csv")
    assert argument_paths(["x"] * LOOKED_AT + [path], (), None, around(home)).is_cut
    assert not argument_paths(["x"] * (LOOKED_AT - 10) + [path], (), None, around(home)).is_cut
    assert argument_paths(None, (), "[" * 100_000, around(home)).is_cut
    assert argument_paths(None, (), json.dumps(["x" * JSON_LIMIT_BYTES, path]), around(home)).is_cut
    assert not argument_paths(None, (), "x" * (JSON_LIMIT_BYTES + 1), around(home)).is_cut


def test_no_more_paths_are_kept_than_a_person_can_read(home: Path) -> None:
    files = [home / "data" / f"{number:03}" for number in range(NAMED + 1)]
    for file in files:
        file.write_text("x")
    exactly = named(home, *map(str, files[:NAMED]), str(files[0]))
    assert (len(exactly.paths), exactly.is_cut) == (NAMED, False)
    more = named(home, *map(str, files))
    assert (more.paths, more.is_cut) == (exactly.paths, True)


@pytest.mark.parametrize(
    "text",
    [
        *("{0}/.ssh/id_rsa", "~/.ssh/id_rsa", "../../.ssh/id_rsa", "@~/.ssh/id_rsa", "file://{0}/.ssh/id_rsa", "~"),
        *(
            "/",
            "--root=/",
            "/etc/passwd",
            "../../../../../../../../../../etc/passwd",
            "/proc/self/environ",
            "/dev",
            "file://",
        ),
        *("{0}", "{0}/..", "{0}/state", "{0}/state/state.sqlite3", "/proc/self/root{0}/data/a.csv"),
    ],
)
def test_these_are_seen_and_stay_closed(home: Path, text: str) -> None:
    (home / "state").mkdir()
    (home / "state/state.sqlite3").write_text("x")
    found = named(home, text.format(home), state_folder=home / "state")
    assert found.paths
    assert found.closed == found.paths


def test_data_of_the_user_is_not_closed(home: Path) -> None:
    assert named(home, f"{home}/data/a.csv", "/usr").closed == ()


def test_a_link_counts_as_what_it_leads_to(home: Path) -> None:
    (home / "innocent").symlink_to(".ssh/id_rsa")
    (home / "fine").symlink_to("data")
    assert named(home, f"{home}/innocent") == ArgumentPaths((f"{home}/.ssh/id_rsa",), (f"{home}/.ssh/id_rsa",))
    assert named(home, f"{home}/fine/a.csv") == ArgumentPaths((f"{home}/data/a.csv",))


@pytest.mark.parametrize(
    "place", ["skills/demo", "skills/demo/scripts", "work", "work/sub", "out", "skillkit-work-x/y"]
)
def test_a_link_where_scripts_write_opens_nothing(home: Path, place: str) -> None:
    """An earlier run, or whoever wrote the skill, could have put it there for a later argument to name."""
    (home / place).mkdir(parents=True, exist_ok=True)
    (home / place / "link").symlink_to(home / "data")
    (home / "way").symlink_to(place)
    writable = {"writable": (home / "out",)}
    for text in (f"{home}/{place}/link/a.csv", f"{home}/way/link/a.csv", f"{home}/data/../{place}/link/./a.csv"):
        assert named(home, text, **writable).closed == (f"{home}/data/a.csv",), text
    assert named(home, f"{home}/data/a.csv", **writable).closed == ()


def test_a_link_that_stays_in_the_workspace_is_within_reach(home: Path) -> None:
    (home / "work/link").symlink_to("sub")
    assert named(home, "link", f"{home}/work/link") == ArgumentPaths()


def test_a_path_named_directly_and_through_such_a_link_stays_closed(home: Path) -> None:
    (home / "work/link").symlink_to(home / "data")
    for words in ((f"{home}/data", "link"), ("link", f"{home}/data")):
        assert named(home, *words) == ArgumentPaths((f"{home}/data",), (f"{home}/data",))
