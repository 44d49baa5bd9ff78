from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillkit import PathSecurityError, ScriptMetadata, ScriptNotFoundError, ScriptPermissionError, SkillKitError
from skillkit.core.resolve.locate import find_script

FILES = ("scripts/run.sh", "scripts/run.py", "scripts/tools/run.rb", "scripts/tools/parse.py", "top.pl")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "skill"
    for relative in (*FILES, "references/extra.py", "references/notes.md"):
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        (folder / relative).write_text("")
    return folder


def detected() -> list[ScriptMetadata]:
    types = {".sh": "shell", ".py": "python", ".rb": "ruby", ".pl": "perl"}
    return [ScriptMetadata(Path(path).stem, Path(path), types[Path(path).suffix]) for path in FILES]


def found(requested: str, base: Path) -> str:
    return find_script(requested, "demo", base, detected()).path.as_posix()


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param("scripts/run.sh", "scripts/run.sh", id="path"),
        pytest.param("run.py", "scripts/run.py", id="below scripts"),
        pytest.param("tools/run.rb", "scripts/tools/run.rb", id="nested below scripts"),
        pytest.param("parse.py", "scripts/tools/parse.py", id="file name"),
        pytest.param("parse", "scripts/tools/parse.py", id="stem"),
        pytest.param("tools/run", "scripts/tools/run.rb", id="path without extension"),
        pytest.param("scripts/tools/parse", "scripts/tools/parse.py", id="whole path without extension"),
        pytest.param("top", "top.pl", id="beside SKILL.md"),
        pytest.param("./scripts//run.sh", "scripts/run.sh", id="spelled loosely"),
        pytest.param("references/extra.py", "references/extra.py", id="not detected, by its path"),
    ],
)
def test_a_script_is_found_by_path_name_or_stem(base: Path, requested: str, expected: str) -> None:
    assert found(requested, base) == expected


def test_an_absolute_path_inside_is_the_relative_one(base: Path) -> None:
    assert found(str(base / "scripts/run.sh"), base) == "scripts/run.sh"
    link = base.parent / "link"
    link.symlink_to(base)
    assert found(str(link / "scripts/run.sh"), base) == "scripts/run.sh"


def test_a_stem_that_fits_several_lists_them_all(base: Path) -> None:
    with pytest.raises(ScriptNotFoundError, match="fits several") as caught:
        found("run", base)
    assert caught.value.available == ("scripts/run.sh", "scripts/run.py", "scripts/tools/run.rb")


@pytest.mark.parametrize("requested", ["nope", "scripts", "references/notes.md", "RUN.SH", "run.sh/x", "x" * 5000, "."])
def test_a_miss_lists_what_exists(base: Path, requested: str) -> None:
    with pytest.raises(ScriptNotFoundError, match="There are: scripts/run") as caught:
        found(requested, base)
    assert caught.value.available == tuple(sorted(FILES))


def test_a_skill_without_scripts_says_so(base: Path) -> None:
    with pytest.raises(ScriptNotFoundError, match="It has no scripts"):
        find_script("nope", "demo", base, [])


@pytest.mark.parametrize(
    "requested",
    [
        "",
        "..",
        "../skill/scripts/run.sh",
        "skill/../skill/scripts/run.sh",
        "../../etc/passwd",
        "scripts/../scripts/run.sh",
        "..\\run.sh",
        "/etc/passwd",
        "/",
        "run.sh\0",
        "\ud800.sh",
    ],
)
def test_what_leaves_the_skill_or_goes_up_is_a_security_violation(
    base: Path, requested: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(PathSecurityError, match="may not be used") as caught:
        found(requested, base)
    assert caught.value.requested_path == requested
    assert [record.name for record in caplog.records] == ["skillkit.security"]


@pytest.mark.parametrize("requested", ["scripts/out.sh", "out.sh", "scripts/folder/x.sh"])
def test_a_link_that_leads_out_is_a_security_violation_although_detection_skips_it(base: Path, requested: str) -> None:
    outside = base.parent / "outside"
    outside.mkdir()
    (outside / "x.sh").write_text("")
    (base / "scripts/out.sh").symlink_to(outside / "x.sh")
    (base / "scripts/folder").symlink_to(outside)
    with pytest.raises(PathSecurityError, match="it leads to"):
        found(requested, base)


@pytest.mark.parametrize("requested", ["scripts/x.py", "x.py"])
def test_what_is_no_regular_file_is_refused_for_what_it_is(base: Path, requested: str) -> None:
    os.mkfifo(base / "scripts/x.py")
    with pytest.raises(ScriptPermissionError, match="not a regular file"):
        found(requested, base)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(["..", ".", "scripts", "skill", "run.sh", "link", "", "~", "a\0", "tools", "%2e%2e", "\\.."]),
        min_size=1,
        max_size=6,
    ),
    lead=st.sampled_from(["", "/", "//", "./"]),
)
def test_no_spelling_finds_a_script_outside(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], lead: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "spellings"
    if not root.exists():
        (root / "skill/scripts").mkdir(parents=True)
        (root / "skill/scripts/run.sh").write_text("")
        (root / "run.sh").write_text("")
        (root / "skill/link").symlink_to(root)
    try:
        script = find_script(lead + "/".join(parts), "demo", root / "skill", detected()[:1])
    except SkillKitError:
        return
    real = os.path.realpath(root / "skill" / script.path)
    assert real.startswith(os.path.realpath(root / "skill") + os.sep)
