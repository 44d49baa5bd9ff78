"""Running, listing or keeping a file that is not the skill's, by the names and links it is asked for with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.running import kinds, made_manager, only_record, runnable

from skillkit import PathSecurityError, ScriptNotFoundError, SkillKitError

EVIL = 'echo pwned > "$1"\n'


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    script = tmp_path / "outside" / "evil.sh"
    script.parent.mkdir()
    script.write_text(EVIL)
    return script


def test_control_the_outside_script_works_when_run_plainly(tmp_path: Path, outside: Path) -> None:
    subprocess.run(["bash", outside, tmp_path / "mark"], check=True)
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "name",
    [
        "../../outside/evil.sh",
        "../../../../../../../../etc/passwd",
        "scripts/../../../outside/evil.sh",
        "..\\..\\outside\\evil.sh",
        "/etc/passwd",
        "{outside}",
        "{base}/../../outside/evil.sh",
        "scripts/link.sh",
        "link.sh",
        "scripts/folder/evil.sh",
        "folder/evil.sh",
        "scripts/chain.sh",
        "run.sh\0../../outside/evil.sh",
        "scripts/loop.sh",
    ],
)
def test_no_name_leads_out_of_the_skill(tmp_path: Path, outside: Path, name: str) -> None:
    with runnable(tmp_path, "echo fine\n") as manager:
        base = tmp_path / "skills/demo"
        scripts = base / "scripts"
        (scripts / "link.sh").symlink_to(outside)
        (scripts / "folder").symlink_to(outside.parent)
        (scripts / "chain.sh").symlink_to("link.sh")
        (scripts / "loop.sh").symlink_to("loop.sh")
        requested = name.format(outside=outside, base=base)
        with pytest.raises(PathSecurityError, match="may not be used"):
            manager.execute_skill_script("demo", requested, argv=[str(tmp_path / "mark")])
    assert not (tmp_path / "mark").exists()
    assert kinds(tmp_path) == ["refused"]
    refused = only_record(tmp_path, "refused")
    assert (refused["error"], refused["script"]) == ("PathSecurityError", requested)


@pytest.mark.parametrize("name", ["link", "evil", "~/evil.sh", "file:///etc/passwd", "%2e%2e/evil.sh", "scripts"])
def test_other_spellings_find_nothing(tmp_path: Path, outside: Path, name: str) -> None:
    with runnable(tmp_path, "echo fine\n") as manager:
        (tmp_path / "skills/demo/scripts/link.sh").symlink_to(outside)
        with pytest.raises(SkillKitError, match=r"no script|may not be used"):
            manager.execute_skill_script("demo", name, argv=[str(tmp_path / "mark")])
    assert not (tmp_path / "mark").exists()


def test_a_script_that_becomes_a_link_after_detection_is_refused(tmp_path: Path, outside: Path) -> None:
    with runnable(tmp_path, "echo fine\n") as manager:
        manager.list_scripts("demo")
        script = tmp_path / "skills/demo/scripts/run.sh"
        script.unlink()
        script.symlink_to(outside)
        with pytest.raises(PathSecurityError, match="it leads to"):
            manager.execute_skill_script("demo", "run", argv=[str(tmp_path / "mark")])
    assert not (tmp_path / "mark").exists()


def test_a_folder_that_becomes_a_link_after_detection_is_refused(tmp_path: Path, outside: Path) -> None:
    with runnable(tmp_path, "echo fine\n", name="scripts/evil.sh") as manager:
        manager.list_scripts("demo")
        scripts = tmp_path / "skills/demo/scripts"
        scripts.rename(tmp_path / "moved")
        scripts.symlink_to(outside.parent)
        with pytest.raises(PathSecurityError, match="it leads to"):
            manager.execute_skill_script("demo", "evil", argv=[str(tmp_path / "mark")])
    assert not (tmp_path / "mark").exists()


def test_a_link_that_stays_inside_is_fine(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"lib/real.sh": "echo inside\n"}) as manager:
        (tmp_path / "skills/demo/scripts").mkdir()
        (tmp_path / "skills/demo/scripts/alias.sh").symlink_to("../lib/real.sh")
        assert manager.execute_skill_script("demo", "alias").stdout == "inside\n"


def test_what_the_digest_leaves_out_never_runs(tmp_path: Path) -> None:
    """A change in `.git` revokes no approval, so nothing in it may be a script."""
    with (
        made_manager(tmp_path, {".git/hooks/evil.sh": EVIL}) as manager,
        pytest.raises(ScriptNotFoundError, match="no part of the skill"),
    ):
        manager.execute_skill_script("demo", ".git/hooks/evil.sh", argv=[str(tmp_path / "mark")])
    assert not (tmp_path / "mark").exists()


REPLACES_ITS_WORK_FOLDER = 'rmdir "$SKILL_WORK_DIR"; ln -s "$1" "$SKILL_WORK_DIR"\n'


def test_a_link_in_place_of_the_work_folder_lists_and_changes_nothing_behind_it(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "folder").mkdir(parents=True, mode=0o755)
    (precious / "folder").chmod(0o755)
    precious.chmod(0o755)
    (precious / "folder" / "key").write_text("secret")
    control = list(os.walk(precious))
    assert control[0][1] == ["folder"], "there is something to list"
    with runnable(tmp_path, REPLACES_ITS_WORK_FOLDER) as manager:
        result = manager.execute_skill_script("demo", "run", argv=[str(precious)])
        assert (result.exit_code, result.artifacts) == (0, ())
    assert (precious / "folder" / "key").read_text() == "secret"
    assert [oct(path.stat().st_mode & 0o777) for path in (precious, precious / "folder")] == ["0o755", "0o755"]


def test_a_link_to_folders_without_files_changes_nothing_behind_it_either(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "folder").mkdir(parents=True)
    for path in (precious, precious / "folder"):
        path.chmod(0o755)
    with runnable(tmp_path, REPLACES_ITS_WORK_FOLDER) as manager:
        manager.execute_skill_script("demo", "run", argv=[str(precious)])
    assert [oct(path.stat().st_mode & 0o777) for path in (precious, precious / "folder")] == ["0o755", "0o755"]


def test_links_inside_the_work_folder_lead_nowhere_when_it_is_removed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    precious.chmod(0o755)
    (precious / "key").write_text("secret")
    text = 'cd "$SKILL_WORK_DIR"; ln -s "$1" folder; ln -s "$1/key" file; ln "$1/key" hard; mkdir shut; chmod 0 shut\n'
    with runnable(tmp_path, text) as manager:
        result = manager.execute_skill_script("demo", "run", argv=[str(precious)])
        assert [str(item.relative_path) for item in result.artifacts] == ["hard"]
        root = result.artifacts[0].path.parent
    assert not root.exists()
    assert (precious / "key").read_text() == "secret"
    assert oct(precious.stat().st_mode & 0o777) == "0o755"
