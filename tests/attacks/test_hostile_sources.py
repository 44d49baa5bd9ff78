"""A repository or an archive made to run something, to write elsewhere or to hide something: refused by name, or inert."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.repositories import ENVIRONMENT, Repository, skill_text

from skillkit.cli.main import exit_code_of
from skillkit.core.exceptions import SizeLimitExceededError
from skillkit.sources import archives, index, listing

SKILL = ("100644", "skills/demo/SKILL.md", skill_text("demo").encode())
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture
def add(project: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Any]:  # noqa: ARG001
    def run(source: str | Path, *words: str, code: int = 0) -> Any:
        capfd.readouterr()
        ended = exit_code_of(["add", str(source), *words, "--json"])
        told = capfd.readouterr()
        assert ended == code, told.out + told.err
        return json.loads(told.out)

    return run


def control_checkout(repository: Repository, target: Path) -> None:
    """What an ordinary clone does with the same repository."""
    environment = {**ENVIRONMENT, "HOME": os.environ["HOME"], "GIT_CONFIG_GLOBAL": os.environ["HOME"] + "/.gitconfig"}
    subprocess.run(
        ["git", "clone", "-q", repository.url, str(target)], env=environment, check=True, capture_output=True
    )


def test_no_filter_runs_though_the_user_has_one(
    repository: Repository, tmp_path: Path, add: Any, project: Path
) -> None:
    """As Git LFS is set up: a filter in the user's own settings, chosen by a file of the repository."""
    mark = tmp_path / "filtered"
    Path(os.environ["HOME"], ".gitconfig").write_text(f'[filter "own"]\n\tsmudge = touch {mark} && cat\n')
    repository.commit(
        {
            "skills/demo/SKILL.md": skill_text("demo"),
            "skills/demo/data.bin": "x",
            ".gitattributes": "*.bin filter=own\n",
        }
    )
    add(repository.url)
    assert (project / "skills/demo/data.bin").read_text() == "x"
    assert not mark.exists()
    control_checkout(repository, tmp_path / "clone")
    assert mark.exists(), "control: a checkout runs it"


def test_no_hook_runs_though_the_user_has_templates(repository: Repository, tmp_path: Path, add: Any) -> None:
    mark, hooks = tmp_path / "hooked", tmp_path / "template/hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    settings = f"[init]\n\ttemplateDir = {hooks.parent}\n[core]\n\thooksPath = {hooks}\n"
    Path(os.environ["HOME"], ".gitconfig").write_text(settings)
    repository.add_skill("demo")
    add(repository.url)
    assert not mark.exists()
    control_checkout(repository, tmp_path / "clone")
    assert mark.exists(), "control: a clone runs it"


@pytest.mark.parametrize(
    ("mode", "path", "content", "reason"),
    [
        ("120000", "way-out", b"/etc/passwd", "is a link that leads out of the skill, to '/etc/passwd'"),
        ("120000", "way-out", b"../other/SKILL.md", "is a link that leads out of the skill"),
        ("120000", "sub/way-out", b"../../other", "is a link that leads out of the skill"),
        ("120000", "way-out", b"sub/../../other", "is a link that leads out of the skill"),
        ("120000", "way-out", b".git/config", "is inside '.git'"),
        ("160000", "module", b"1" * 40, "is another repository (a submodule)"),
        ("100644", "model.bin", POINTER, "is a pointer of Git LFS"),
        ("100644", "skill.MD", b"x", "differs from 'SKILL.md' only in case"),
        ("100644", "caf\u00e9", b"x", "differs from 'cafe\u0301' only in case or in the form of its letters"),
        ("100644", "A/b", b"x", "'a' differs from 'A' only in case"),
        ("100644", "line\nbreak", b"x", "has a name with characters that are not shown"),
        ("100644", "back\\slash", b"x", "that some systems do not allow"),
        ("100644", "hidden\u202etxt.exe", b"x", "has a name with characters that are not shown"),
        ("100644", "NUL.txt", b"x", "has the name of a device"),
        ("100644", "end.", b"x", "ends with a dot"),
        ("100644", os.fsdecode(b"latin-\xe9"), b"x", "has a name with characters that are not shown"),
        ("100644", "/".join("d" * 60), b"x", "lies too deep"),
    ],
)
def test_what_may_be_in_no_skill_is_refused_by_name(
    repository: Repository, add: Any, project: Path, mode: str, path: str, content: bytes, reason: str
) -> None:
    others = [("100644", f"skills/demo/{name}", b"y") for name in ("cafe\u0301", "a/x")]
    repository.commit_entries([SKILL, *others, (mode, f"skills/demo/{path}", content)])
    assert reason in add(repository.url, code=126)["error"]["message"]
    assert os.listdir(project) == [], "nothing is left"


def test_control_the_same_repository_without_it_is_added(repository: Repository, add: Any) -> None:
    others = [("100644", f"skills/demo/{name}", b"y") for name in ("cafe\u0301", "a/x")]
    inside = [("120000", "skills/demo/a/up", b"../cafe\xcc\x81"), ("120000", "skills/demo/here", b"a/x")]
    repository.commit_entries([SKILL, *others, *inside])
    assert len(add(repository.url)["skills"][0]["files"]) == 5


def test_what_is_wrong_with_one_skill_does_not_touch_another(repository: Repository, add: Any, project: Path) -> None:
    good = ("100644", "skills/good/SKILL.md", skill_text("good").encode())
    repository.commit_entries([SKILL, good, ("120000", "skills/demo/way-out", b"/etc")])
    add(repository.url, code=126)
    add(repository.url, "--skill", "good")
    assert os.listdir(project / "skills") == ["good"]


@pytest.mark.parametrize(
    "source",
    [
        "ext::sh -c 'touch mark'",
        "http://example.com/skills.git",
        "git://example.com/skills.git",
        "https://-oProxyCommand=touch mark/x",
        "ssh://-oProxyCommand=touch/x",
        "--upload-pack=touch mark",
        "file:///x#--upload-pack=touch",
        "file:///x#a:../../b",
        "https://user:secret@example.com/skills.git",
    ],
)
def test_no_word_becomes_an_option_of_git_or_a_program(source: str, project: Path) -> None:
    assert exit_code_of(["add", "--", source]) == 125
    assert os.listdir(project) == []


def zipped(entries: list[tuple[str, bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.create_system = 3
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return buffer.getvalue()


IN_ZIP = ("demo/SKILL.md", skill_text("demo").encode(), 0o100644)


@pytest.mark.parametrize(
    ("name", "content", "mode", "reason"),
    [
        ("demo/../../planted", b"x", 0o100644, "may lead out of the skill"),
        ("demo//etc/planted", b"x", 0o100644, "may lead out of the skill"),
        ("demo/way-out", b"/etc", 0o120777, "is a link that leads out"),
        ("demo/pipe", b"", 0o010644, "is neither a file nor a link"),
        ("demo/SKILL.md", b"twice", 0o100644, "is there twice"),
        ("demo/scripts", b"x", 0o100644, "lies below 'scripts'"),
        ("demo/.git/hooks/post-checkout", b"x", 0o100755, "is inside '.git'"),
        ("demo/.GIT/config", b"x", 0o100644, "is inside '.git'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_writes_nowhere_else_and_hides_nothing(
    add: Any, tmp_path: Path, project: Path, name: str, content: bytes, mode: int, reason: str
) -> None:
    file = tmp_path / "demo.skill"
    file.write_bytes(zipped([IN_ZIP, ("demo/scripts/run.sh", b"x", 0o100755), (name, content, mode)]))
    assert reason in add(file, code=126)["error"]["message"]
    assert os.listdir(project) == []
    assert sorted(os.listdir(tmp_path)) == ["demo.skill", "project"]


def test_control_the_usual_way_to_unpack_follows_a_planted_link(tmp_path: Path) -> None:
    """The same archive by tar as many scripts call it: the file lands outside."""
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    with tarfile.open(tmp_path / "demo.tar", "w") as archive:
        link = tarfile.TarInfo("demo")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        archive.addfile(link)
        file = tarfile.TarInfo("demo/planted")
        archive.addfile(file, io.BytesIO(b""))
    usual: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
    shutil.unpack_archive(tmp_path / "demo.tar", target, **usual)
    assert (outside / "planted").exists()


def test_a_bomb_is_not_unpacked(add: Any, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillkit.sources.listing.FILE_BYTES", 1_000_000)
    monkeypatch.setattr(archives, "SKILL_BYTES", 1_000_000)
    file = tmp_path / "demo.zip"
    file.write_bytes(zipped([IN_ZIP, ("demo/zeros", bytes(2_000_000), 0o100644)]))
    assert "'zeros' has 2,000,000 bytes" in add(file, code=126)["error"]["message"]
    packed = tmp_path / "demo.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        info = tarfile.TarInfo("demo/zeros")
        info.size = 2_000_000
        archive.addfile(info, io.BytesIO(bytes(2_000_000)))
    assert "more than 1,000,000 bytes" in add(packed, code=126)["error"]["message"]
    assert os.listdir(project) == []


def test_one_file_many_times_over_is_not_read_into_memory(
    repository: Repository, add: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes in a repository: the same content under many names. Each is small enough alone."""
    monkeypatch.setattr(listing, "SOURCE_BYTES", 1_000_000)
    text = skill_text("demo").encode() + b"x" * 200_000
    repository.commit_entries([("100644", f"skills/s{number}/SKILL.md", text) for number in range(10)])
    assert "its SKILL.md files have 2,0" in add(repository.url, code=126)["error"]["message"]
    one = skill_text("same").encode()
    entries = [("100644", f"{side}/same/SKILL.md", one) for side in ("a", "b")]
    entries += [("100644", f"{side}/same/{number}", bytes(100_000)) for side in ("a", "b") for number in range(15)]
    repository.git("rm", "-rq", "--cached", ".")
    repository.commit_entries(entries)
    assert "has 1,5" in add(repository.url, code=126)["error"]["message"]
    assert os.listdir(project) == []


def test_a_bomb_in_the_archive_of_an_index_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SOURCE_BYTES", 1_000_000)
    monkeypatch.setattr(index, "SOURCE_BYTES", 1_000_000)
    bomb = zipped([IN_ZIP, ("demo/zeros", bytes(2_000_000), 0o100644)])
    small = zipped([IN_ZIP, ("demo/zeros", bytes(400_000), 0o100644)])

    def served(*contents: bytes) -> None:
        entry = {"type": "archive", "url": "a.zip"}
        listed = [
            {**entry, "name": f"s{number}", "digest": f"sha256:{sha256(content).hexdigest()}"}
            for number, content in enumerate(contents)
        ]
        answers = iter((json.dumps({"skills": listed}).encode(), *contents))
        monkeypatch.setattr(index, "download", lambda *_, **__: next(answers))
        index.IndexTree("https://a.example/index.json", (), seconds=1)

    served(small, small)
    with pytest.raises(SizeLimitExceededError, match=r"a\.zip has 2,0"):
        served(bomb)
    with pytest.raises(SizeLimitExceededError, match="together"):
        served(small, small, small)


def test_an_entry_without_a_name_is_damage(add: Any, tmp_path: Path, project: Path) -> None:
    file = tmp_path / "demo.zip"
    content = bytearray(zipped([IN_ZIP, ("x", b"", 0o100644)]))
    at = content.rindex(b"PK\x01\x02")
    content[at + 28 : at + 30] = b"\0\0"
    del content[at + 46 : at + 47]
    size_at = content.rindex(b"PK\x05\x06") + 12
    size = int.from_bytes(content[size_at : size_at + 4], "little") - 1
    content[size_at : size_at + 4] = size.to_bytes(4, "little")
    file.write_bytes(content)
    assert "no name" in add(file, code=125)["error"]["message"]
    assert os.listdir(project) == []


def test_an_archive_that_lies_about_a_size_is_damaged(add: Any, tmp_path: Path, project: Path) -> None:
    content = zipped([IN_ZIP, ("demo/data", b"A" * 5000, 0o100644)])
    size = (5000).to_bytes(4, "little")
    file = tmp_path / "demo.zip"
    file.write_bytes(content.replace(size, (50).to_bytes(4, "little")))
    assert content.count(size) == 2, "once before the file, once in the list"
    assert "is damaged" in add(file, code=125)["error"]["message"]
    assert os.listdir(project) == []


def tarred(entries: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for info, content in [(tarfile.TarInfo("demo/SKILL.md"), skill_text("demo").encode()), *entries]:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def tar_entry(name: str, kind: bytes = tarfile.REGTYPE, leads_to: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, leads_to
    return info


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (tar_entry("demo/../../planted"), "may lead out of the skill"),
        (tar_entry("demo//tmp/planted"), "may lead out of the skill"),
        (tar_entry("demo/way-out", tarfile.SYMTYPE, "/etc/passwd"), "is a link that leads out"),
        (tar_entry("demo/way-out", tarfile.SYMTYPE, "../../.."), "is a link that leads out"),
        (tar_entry("demo/twin", tarfile.LNKTYPE, "/etc/passwd"), "is neither a file nor a link"),
        (tar_entry("demo/disk", tarfile.BLKTYPE), "is neither a file nor a link"),
        (tar_entry("demo/pipe", tarfile.FIFOTYPE), "is neither a file nor a link"),
        (tar_entry("demo/SKILL.md"), "is there twice"),
        (tar_entry("demo/skill.md"), "only in case"),
        (tar_entry("demo/.git/config"), "is inside '.git'"),
    ],
    ids=lambda value: value.name if isinstance(value, tarfile.TarInfo) else "",
)
def test_a_tar_writes_nowhere_else_and_hides_nothing(
    add: Any, tmp_path: Path, project: Path, entry: tarfile.TarInfo, reason: str
) -> None:
    file = tmp_path / "demo.tar.gz"
    file.write_bytes(tarred([(entry, b"")]))
    assert reason in add(file, code=126)["error"]["message"]
    assert os.listdir(project) == []
    assert sorted(os.listdir(tmp_path)) == ["demo.tar.gz", "project"]


def test_control_the_same_tar_without_it_is_added(add: Any, tmp_path: Path) -> None:
    inside = [(tar_entry("demo/here", tarfile.SYMTYPE, "a/x"), b""), (tar_entry("demo/a/x"), b"y")]
    file = tmp_path / "demo.tar.gz"
    file.write_bytes(tarred(inside))
    assert add(file)["skills"][0]["files"] == ["SKILL.md", "a/x", "here"]


@pytest.mark.parametrize("name", ["/planted", "../planted", "demo/..\\..\\planted", "C:/planted", "demo/a:b"])
def test_a_name_in_an_archive_that_leads_elsewhere_is_never_written(
    add: Any, tmp_path: Path, project: Path, name: str
) -> None:
    file = tmp_path / "demo.zip"
    file.write_bytes(zipped([IN_ZIP, (name, b"x", 0o100644)]))
    # Beside the skill nothing of it is taken; inside it is refused.
    code = 126 if name.startswith("demo/") else 0
    add(file, code=code)
    written = [each for each in tmp_path.rglob("*") if "planted" in each.name or ":" in each.name]
    assert written == []
    assert not Path("/planted").exists()
    assert (project / "skills").exists() == (code == 0)


def test_an_archive_of_very_many_names_is_not_read_through(
    add: Any, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "ENTRIES", 500)
    file = tmp_path / "demo.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("demo/SKILL.md", skill_text("demo"))
        for number in range(archives.ENTRIES + 1):
            archive.writestr(f"demo/{number}", b"")
    assert "more than 500 entries" in add(file, code=126)["error"]["message"]
    assert os.listdir(project) == []


def test_an_encrypted_archive_is_refused_by_name(add: Any, tmp_path: Path, project: Path) -> None:
    content = bytearray(zipped([IN_ZIP, ("demo/data", b"x", 0o100644)]))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = content.rindex(mark)
        content[start + at] |= 1
    file = tmp_path / "demo.zip"
    file.write_bytes(content)
    assert "is encrypted" in add(file, code=126)["error"]["message"]
    assert os.listdir(project) == []


@pytest.mark.slow
def test_a_file_of_a_gigabyte_in_a_small_repository_is_refused_without_being_read(
    repository: Repository, tmp_path: Path, project: Path
) -> None:
    """A few million bytes on the way, a billion once unpacked."""
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    quickly = ("-c", "core.bigFileThreshold=1m", "-c", "core.compression=1")
    blob = repository.git(*quickly, "hash-object", "-w", str(large))
    large.unlink()
    repository.commit_entries([SKILL])
    rows = f"100644 {blob}\tskills/demo/large.bin\n100644 {blob}\tother/large.bin\n"
    repository.git("update-index", "--add", "--index-info", stdin=rows.encode())
    commit = repository.git("commit-tree", repository.git("write-tree"), "-m", "large")
    repository.git("update-ref", "refs/heads/main", commit)
    # Started by a small program: a process counts what its parent held when it was born.
    measured = (
        "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    )
    command = [sys.executable, "-c", measured, sys.executable, "-m", "skillkit", "add", repository.url]
    adding = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project)
    assert adding.returncode == 126, adding.stderr
    assert "'large.bin' has 1,073,741,824 bytes" in adding.stderr
    assert os.listdir(project) == []
    assert int(adding.stdout) < 300_000, "kilobytes: nobody held it in memory"
