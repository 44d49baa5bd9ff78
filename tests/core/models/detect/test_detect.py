"""Which files of a skill folder are its scripts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from skillkit.core.models import detect
from skillkit.core.models.detect import ScriptDetector
from skillkit.core.values.skills import ScriptMetadata


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    base = tmp_path / "skill"
    (base / "scripts").mkdir(parents=True)
    (base / "SKILL.md").write_text("---\nname: skill\ndescription: A skill.\n---\n")
    return base


def written(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def paths_in(skill: Path, max_depth: int = 5) -> list[str]:
    return [script.path.as_posix() for script in ScriptDetector(max_depth).detect_scripts(skill)]


def test_a_script_is_told_with_name_path_language_and_description(skill: Path) -> None:
    written(skill / "scripts/pdf/extract.py", '#!/usr/bin/env python3\n"""Extract tables."""\n')
    written(skill / "deploy.sh", "#!/bin/bash\n# Deploy it.\n")
    assert ScriptDetector().detect_scripts(skill) == [
        ScriptMetadata("deploy", Path("deploy.sh"), "shell", "Deploy it."),
        ScriptMetadata("extract", Path("scripts/pdf/extract.py"), "python", "Extract tables."),
    ]


def test_scripts_come_in_the_order_of_their_paths(skill: Path) -> None:
    names = ["z.py", "scripts/b.py", "scripts/a/z.py", "scripts/a.py", "scripts/B.py", "a.sh"]
    for name in names:
        written(skill / name)
    assert paths_in(skill) == sorted(names)


def test_more_scripts_than_one_batch_are_all_found(skill: Path) -> None:
    names = [f"scripts/s{number:03}.py" for number in range(200)]
    for name in names:
        written(skill / name, f'"""{name}"""\n')
    found = ScriptDetector().detect_scripts(skill)
    assert [(script.path.as_posix(), script.description) for script in found] == [(name, name) for name in names]


def test_folders_beside_scripts_are_not_searched(skill: Path) -> None:
    written(skill / "references/a.py")
    written(skill / "lib/scripts/b.py")
    assert paths_in(skill) == []


@pytest.mark.parametrize("max_depth", [0, 1, 5])
def test_max_depth_counts_the_folders_below_scripts(skill: Path, max_depth: int) -> None:
    folders = [""]
    for level in range(1, 8):
        folders.append(f"{folders[-1]}{level}/")
    for folder in folders:
        written(skill / f"scripts/{folder}x.py")
    expected = sorted(f"scripts/{folder}x.py" for folder in folders[: max_depth + 1])
    assert paths_in(skill, max_depth) == expected


def test_a_negative_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative: -1"):
        ScriptDetector(-1)


def test_a_missing_folder_has_no_scripts(tmp_path: Path) -> None:
    assert ScriptDetector().detect_scripts(tmp_path / "missing") == []
    assert ScriptDetector().detect_scripts(Path("nul\0byte")) == []
    assert ScriptDetector().detect_scripts(written(tmp_path / "file.py")) == []


def test_a_skill_without_scripts_folder_has_those_beside_skill_md(tmp_path: Path) -> None:
    written(tmp_path / "run.py")
    assert paths_in(tmp_path) == ["run.py"]


@pytest.mark.parametrize(
    "name",
    [
        "__init__.py",
        "conftest.py",
        ".hidden.py",
        ".hidden/x.py",
        ".venv/x.py",
        "venv/x.py",
        "node_modules/x.js",
        "__pycache__/x.py",
        "types.d.ts",
        "types.d.mts",
        "notes.md",
        "data.json",
        "table.csv",
        "program.cs",
        "Makefile",
        "requirements.txt",
    ],
)
def test_what_is_no_script_is_left_out(skill: Path, name: str) -> None:
    written(skill / "scripts" / name, "# text\n")
    assert paths_in(skill) == []


@pytest.mark.parametrize("marker", ["SKILL.md", "skill.md", "pyvenv.cfg"])
def test_a_folder_that_is_another_skill_or_environment_is_left_out(skill: Path, marker: str) -> None:
    written(skill / "scripts/inner" / marker)
    written(skill / "scripts/inner/x.py")
    written(skill / "scripts/inner/scripts/y.py")
    written(skill / "scripts/z.py")
    assert paths_in(skill) == ["scripts/z.py"]


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("x.SH", "", "shell"),
        ("x.d.py", "", "python"),
        ("__main__.py", "", "python"),
        ("test_x.py", "", "python"),
        ("really.sh", "#!/usr/bin/env python3\n", "python"),
        ("wrapper", "#!/bin/sh\n", "shell"),
        ("wrapper", "\ufeff#!/bin/sh\r\n", "shell"),
        ("wrapper", "#!/bin/sh", "shell"),
        ("run.v2", "#!/usr/bin/env python3\n", "python"),
        ("page.ts", "#!/usr/bin/env node\n", "typescript"),
        ("with spaces [1].py", "", "python"),
        ("скрипт.py", "", "python"),
    ],
)
def test_names_and_shebangs_give_the_language(skill: Path, name: str, text: str, language: str) -> None:
    written(skill / "scripts" / name, text)
    relative = Path("scripts", name)
    assert ScriptDetector().detect_scripts(skill) == [ScriptMetadata(relative.stem, relative, language)]


@pytest.mark.parametrize("name", ["window.js", "notes.txt", "plain"])
def test_a_foreign_or_missing_shebang_makes_no_script(skill: Path, name: str) -> None:
    written(skill / "scripts/window.js", "#!/usr/bin/osascript -l JavaScript\n")
    written(skill / "scripts/notes.txt", "#!/bin/bash\n")
    written(skill / "scripts/plain", "just text\n")
    assert f"scripts/{name}" not in paths_in(skill)


def test_the_executable_bit_does_not_matter(skill: Path) -> None:
    written(skill / "scripts/a.sh").chmod(0o644)
    written(skill / "scripts/b.sh").chmod(0o755)
    assert paths_in(skill) == ["scripts/a.sh", "scripts/b.sh"]


def test_a_binary_file_is_a_script_by_extension_only_and_says_nothing(skill: Path) -> None:
    (skill / "scripts/a.py").write_bytes(b"# text\n\0\xff")
    (skill / "scripts/b").write_bytes(b"#!/bin/sh\n# text\n\0")
    assert ScriptDetector().detect_scripts(skill) == [ScriptMetadata("a", Path("scripts/a.py"), "python")]


def test_bytes_that_are_not_utf_8_do_not_raise(skill: Path) -> None:
    (skill / "scripts/a.py").write_bytes(b'\xef\xbb\xbf"""Caf\xe9."""\r\n')
    assert ScriptDetector().detect_scripts(skill)[0].description == "Caf\ufffd."


def test_only_the_head_of_a_script_is_read(skill: Path) -> None:
    written(skill / "scripts/a.py", "\n" * 9000 + '"""Too late."""\n')
    written(skill / "scripts/b.py", '"""Soon."""\n' + "x = 1\n" * 500_000)
    assert [script.description for script in ScriptDetector().detect_scripts(skill)] == ["", "Soon."]


def test_an_unreadable_script_is_listed_without_description(skill: Path) -> None:
    written(skill / "scripts/a.py", '"""Secret."""\n').chmod(0)
    (script,) = ScriptDetector().detect_scripts(skill)
    expected = "Secret." if os.access(skill / "scripts/a.py", os.R_OK) else ""
    assert script == ScriptMetadata("a", Path("scripts/a.py"), "python", expected)


def test_an_unreadable_folder_is_passed_over(skill: Path) -> None:
    written(skill / "scripts/locked/a.py")
    written(skill / "scripts/b.py")
    (skill / "scripts/locked").chmod(0)
    try:
        readable = os.access(skill / "scripts/locked", os.R_OK)
        assert paths_in(skill) == ["scripts/b.py"] + ["scripts/locked/a.py"] * readable
    finally:
        (skill / "scripts/locked").chmod(0o755)


def test_pipes_and_sockets_are_left_out_and_never_block(skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(skill / "scripts/pipe.py")
    os.mkfifo(skill / "pipe")
    (skill / "scripts/link.py").symlink_to("pipe.py")
    monkeypatch.chdir(skill / "scripts")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.py")
        assert paths_in(skill) == []


def test_links_that_stay_inside_are_followed(skill: Path) -> None:
    written(skill / "lib/tool.py", '"""A tool."""\n')
    (skill / "scripts/file.py").symlink_to("../lib/tool.py")
    (skill / "scripts/folder").symlink_to("../lib")
    (skill / "root.py").symlink_to(skill / "lib/tool.py")
    found = ScriptDetector().detect_scripts(skill)
    assert [(script.path.as_posix(), script.description) for script in found] == [
        ("root.py", "A tool."),
        ("scripts/file.py", "A tool."),
        ("scripts/folder/tool.py", "A tool."),
    ]


def test_links_that_lead_out_are_left_out(skill: Path, tmp_path: Path) -> None:
    outside = written(tmp_path / "outside/secret.py", '"""Secret."""\n')
    written(tmp_path / "skill-twin/secret.py")
    (skill / "scripts/file.py").symlink_to(outside)
    (skill / "scripts/folder").symlink_to(outside.parent)
    (skill / "scripts/twin").symlink_to("../../skill-twin")
    (skill / "scripts/chain.py").symlink_to("file.py")
    (skill / "root.py").symlink_to(outside)
    assert paths_in(skill) == []


def test_a_scripts_folder_that_leads_out_is_left_out(skill: Path, tmp_path: Path) -> None:
    written(tmp_path / "outside/secret.py")
    (skill / "scripts").rmdir()
    (skill / "scripts").symlink_to("../outside")
    assert paths_in(skill) == []


def test_a_scripts_folder_may_be_a_link_that_stays_inside(skill: Path) -> None:
    written(skill / "bin/x.py")
    (skill / "scripts").rmdir()
    (skill / "scripts").symlink_to("bin")
    assert paths_in(skill) == ["scripts/x.py"]


def test_a_skill_may_be_reached_through_a_link(skill: Path, tmp_path: Path) -> None:
    written(skill / "scripts/x.py")
    (tmp_path / "alias").symlink_to(skill)
    assert paths_in(tmp_path / "alias") == ["scripts/x.py"]


def test_links_into_left_out_folders_are_left_out(skill: Path) -> None:
    written(skill / ".git/hook.py")
    written(skill / "node_modules/pkg/x.js")
    (skill / "scripts/hook.py").symlink_to("../.git/hook.py")
    (skill / "scripts/git").symlink_to("../.git")
    (skill / "scripts/pkg").symlink_to("../node_modules/pkg")
    assert paths_in(skill) == []


def test_cycles_and_broken_links_end(skill: Path) -> None:
    written(skill / "scripts/a/x.py")
    (skill / "scripts/a/up").symlink_to("..")
    (skill / "scripts/self").symlink_to(".")
    (skill / "scripts/root").symlink_to("..")
    (skill / "scripts/loop.py").symlink_to("loop.py")
    (skill / "scripts/broken.py").symlink_to("missing.py")
    assert paths_in(skill) == ["scripts/a/x.py"]


def test_a_folder_is_listed_once_by_its_own_path(skill: Path) -> None:
    written(skill / "scripts/m/x.py")
    (skill / "scripts/a").symlink_to("m")
    (skill / "scripts/z").symlink_to("m")
    assert paths_in(skill) == ["scripts/m/x.py"]


def test_many_folders_that_link_to_each_other_are_walked_once(skill: Path) -> None:
    folders = [skill / f"scripts/f{number:02}" for number in range(30)]
    for folder in folders:
        written(folder / "x.py")
    for folder in folders:
        for other in folders:
            (folder / f"to-{other.name}").symlink_to(other)
    assert paths_in(skill) == [f"scripts/{folder.name}/x.py" for folder in folders]


def test_a_file_that_vanished_has_an_empty_head(tmp_path: Path) -> None:
    assert detect._head_of(str(tmp_path / "vanished.py")) == ""


SHORT_OF_DESCRIPTORS = """
import os, resource, sys
from pathlib import Path
from skillkit.core.exceptions import ContentLoadError
from skillkit.core.models import Skill, SkillMetadata

skill = Skill(SkillMetadata("skill", "A skill.", Path(sys.argv[1], "SKILL.md")))
import skillkit.core.models.detect
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
taken = []
while True:
    try:
        taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        break
try:
    print(skill.scripts)
except ContentLoadError as error:
    print(error)
for descriptor in taken:
    os.close(descriptor)
print([script.name for script in skill.scripts])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are limited elsewhere")
def test_without_descriptors_nobody_is_told_that_there_are_no_scripts(skill: Path) -> None:
    written(skill / "scripts/run.sh", "echo ran")
    said = subprocess.run(
        [sys.executable, "-c", SHORT_OF_DESCRIPTORS, str(skill)], capture_output=True, check=True, text=True
    ).stdout.splitlines()
    assert "Too many open files" in said[0]
    assert "try again" in said[0]
    assert said[1] == "['run']"


def test_an_entry_the_system_will_not_tell_about_is_passed_over() -> None:
    class SilentEntry:
        def is_file(self, *, follow_symlinks: bool) -> bool:
            raise PermissionError(follow_symlinks)

    assert detect._kind_of(cast("os.DirEntry[str]", SilentEntry())) == ""


def test_importing_detection_loads_no_heavy_module() -> None:
    heavy = "{'ast', 'asyncio', 'inspect', 'json', 'logging', 'subprocess', 'yaml'}"
    code = f"import sys, skillkit.core.models.detect; print(sorted({heavy} & set(sys.modules)))"
    plain = f"import sys, dataclasses; print(sorted({heavy} & set(sys.modules)))"
    loaded, unavoidable = (
        subprocess.run([sys.executable, "-c", text], capture_output=True, check=True, text=True).stdout
        for text in (code, plain)
    )
    assert loaded == unavoidable
