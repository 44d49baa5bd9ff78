from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from support.running import ordinary_user, said_by_user

from skillkit import ScriptNotFoundError, ScriptPermissionError
from skillkit.core.resolve.locate import require_part_of_skill, require_plain_file


def test_a_plain_file_passes(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("")
    for mode in (0o400, 0o644, 0o755, 0o1755):
        os.chmod(file, mode)
        require_plain_file(str(file), "demo")


@pytest.mark.parametrize(("mode", "word"), [(0o4644, "setuid"), (0o2644, "setgid"), (0o6755, "setuid and setgid")])
def test_set_id_bits_are_refused_with_the_remedy(tmp_path: Path, mode: int, word: str) -> None:
    file = tmp_path / "run.sh"
    file.write_text("")
    os.chmod(file, mode)
    with pytest.raises(ScriptPermissionError, match=rf"has the {word} bit; .*chmod a-s"):
        require_plain_file(str(file), "demo")


def test_folders_pipes_and_sockets_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    with socket.socket(socket.AF_UNIX) as unix:
        before = os.getcwd()
        os.chdir(tmp_path)  # a socket's path may have about a hundred characters only
        try:
            unix.bind("socket.py")
        finally:
            os.chdir(before)
        for name in ("pipe.py", "folder.py", "socket.py"):
            with pytest.raises(ScriptPermissionError, match="not a regular file"):
                require_plain_file(str(tmp_path / name), "demo")


def test_what_is_gone_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ScriptNotFoundError, match="not there any more") as caught:
        require_plain_file(str(tmp_path / "gone.py"), "demo")
    assert (caught.value.skill_name, caught.value.script_name) == ("demo", "gone.py")


def test_what_cannot_be_read_is_refused_with_the_remedy() -> None:
    with ordinary_user() as folder:
        (folder / "run.sh").write_text("")
        os.chmod(folder / "run.sh", 0)
        said = said_by_user(
            """
            from pathlib import Path
            from skillkit import ScriptPermissionError
            from skillkit.core.resolve.locate import require_plain_file
            try:
                require_plain_file(Path("run.sh"), "demo")
            except ScriptPermissionError as error:
                print(error)
            """,
            folder,
        )
        assert said == "run.sh cannot be read. Make it readable with 'chmod u+r'.\n"


@pytest.mark.parametrize("relative", [".git/hooks/x.sh", "scripts/.git/x.sh"])
def test_what_the_digest_leaves_out_is_no_script(tmp_path: Path, relative: str) -> None:
    with pytest.raises(ScriptNotFoundError, match="no part of the skill"):
        require_part_of_skill(tmp_path / relative, "demo", tmp_path)


@pytest.mark.parametrize("relative", ["scripts/x.sh", ".github/x.sh", "scripts/git/x.git"])
def test_everything_else_is_part_of_the_skill(tmp_path: Path, relative: str) -> None:
    require_part_of_skill(tmp_path / relative, "demo", tmp_path)
