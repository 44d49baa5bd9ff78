"""Skills from folders, archives and https indexes."""

from __future__ import annotations

import io
import json
import os
import socket
import ssl
import tarfile
import threading
import time
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import trustme
from support.network import ProxyOutside, listening
from support.repositories import Repository, skill_text
from support.skill_folders import skill_folder

from skillkit.core.models.digest import manifest_of
from skillkit.sources.given import WELL_KNOWN

RUN = "#!/bin/sh\necho ran\n"


def locked(project: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = tomllib.loads((project / "skills.lock").read_text())["skill"]
    return found


def archive_of(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            archive.write(file, file.relative_to(folder.parent))
    return buffer.getvalue()


def test_a_folder_is_copied_without_its_git(project: Path, tmp_path: Path, skillkit: Any) -> None:
    source = skill_folder(tmp_path / "mine", "demo", files={"scripts/run.sh": RUN, ".git/config": "x"})
    (added,) = skillkit("add", "../mine")["skills"]
    assert added["digest"] == manifest_of(source).digest
    assert locked(project)["demo"]["source"] == "../mine"
    assert not (project / "skills/demo/.git").exists()
    (source / "scripts/run.sh").write_text("echo other\n")
    assert skillkit("update")["skills"][0]["what"] == "updated"
    assert manifest_of(project / "skills/demo").digest == manifest_of(source).digest


def test_a_folder_is_not_added_to_itself(project: Path, skillkit: Any) -> None:
    """Else `remove` would take the only copy there is."""
    skill = skill_folder(project / "skills", "demo", files={"scripts/run.sh": RUN})
    for typed in ("./skills", "./skills/demo", "."):
        told = skillkit("add", typed, code=126)
        assert "is its source itself" in told["error"]["message"]
    assert not (project / "skills.lock").exists()
    assert (skill / "scripts/run.sh").read_text() == RUN


def test_a_folder_too_deep_is_refused_and_not_cut(project: Path, tmp_path: Path, skillkit: Any) -> None:
    folder = skill_folder(tmp_path / "mine", "demo")
    for _ in range(110):
        folder = folder / "d"
        folder.mkdir()
    (folder / "deep.txt").write_text("x")
    assert "is neither a file nor a link" in skillkit("add", "../mine", code=126)["error"]["message"]
    assert os.listdir(project) == []


def test_a_folder_that_changed_is_not_what_was_locked(project: Path, tmp_path: Path, skillkit: Any) -> None:
    source = skill_folder(tmp_path / "mine", "demo", files={"a.txt": "one"})
    skillkit("add", "../mine")
    (source / "a.txt").write_text("two")
    (project / "skills/demo/a.txt").unlink()
    error = skillkit("sync", "--frozen", "--discard", code=126)["error"]["message"]
    assert "'demo' is not what the lock says" in error
    assert not (project / "skills/demo/a.txt").exists()


@pytest.mark.parametrize("name", ["demo.zip", "demo.skill"])
def test_an_archive_is_unpacked(project: Path, tmp_path: Path, skillkit: Any, name: str) -> None:
    source = skill_folder(tmp_path / "mine", "demo", files={"scripts/run.sh": RUN})
    (tmp_path / name).write_bytes(archive_of(source))
    (added,) = skillkit("add", f"../{name}")["skills"]
    assert added["digest"] == manifest_of(source).digest
    assert added["commit"] == f"sha256:{sha256((tmp_path / name).read_bytes()).hexdigest()}"
    (project / "skills/demo/scripts/run.sh").write_text("changed")
    skillkit("sync", "--frozen", "--discard")
    assert manifest_of(project / "skills/demo").digest == added["digest"]


def test_what_is_no_archive_is_told(tmp_path: Path, skillkit: Any) -> None:
    (tmp_path / "demo.zip").write_bytes(b"hello")
    assert "is no archive that can be read" in skillkit("add", "../demo.zip", code=125)["error"]["message"]
    assert "cannot be read" in skillkit("add", "../nothing.zip", code=125)["error"]["message"]


@pytest.fixture
def index(tmp_path: Path) -> dict[str, Any]:
    """A site with one skill as a text, one as a zip, and one as a tar."""
    served = tmp_path / "served"
    folder = served / os.path.dirname(WELL_KNOWN).strip("/")
    folder.mkdir(parents=True)
    packed = skill_folder(tmp_path / "mine", "packed", files={"scripts/run.sh": RUN})
    (folder / "text.md").write_text(skill_text("text"))
    (folder / "packed.zip").write_bytes(archive_of(packed))
    with tarfile.open(folder / "tarred.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("./SKILL.md")
        content = skill_text("tarred").encode()
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    kinds = {"text.md": "skill-md", "packed.zip": "archive", "tarred.tar.gz": "archive"}
    skills = [
        {
            "name": name.partition(".")[0],
            "type": kind,
            "description": "One.",
            "url": f"/.well-known/agent-skills/{name}",
            "digest": f"sha256:{sha256((folder / name).read_bytes()).hexdigest()}",
        }
        for name, kind in kinds.items()
    ]
    listed = {"skills": skills}
    (folder / "index.json").write_text(json.dumps(listed))
    return {"folder": folder, **listed}


def test_a_site_is_asked_for_its_index(index: dict[str, Any], project: Path, site: str, skillkit: Any) -> None:
    skillkit("add", site, "--skill", "packed")
    assert list(locked(project)) == ["packed"]
    told = skillkit("add", f"{site}{WELL_KNOWN}")["skills"]
    assert {each["name"]: each["what"] for each in told} == {"packed": "unchanged", "tarred": "added", "text": "added"}
    assert locked(project)["text"]["commit"] == index["skills"][0]["digest"]
    assert (project / "skills/packed/scripts/run.sh").read_text() == RUN
    assert skillkit("sync", "--check")["drift"] == 0
    (project / "skills/text/SKILL.md").write_text("changed")
    skillkit("sync", "--frozen", "--discard")
    assert (project / "skills/text/SKILL.md").read_text() == skill_text("text")


def test_an_artifact_with_another_content_than_the_index_says_is_refused(
    index: dict[str, Any], project: Path, site: str, skillkit: Any
) -> None:
    (index["folder"] / "text.md").write_text(skill_text("text", "Evil."))
    error = skillkit("add", site, code=126)["error"]["message"]
    assert "somebody changed one of them" in error
    assert os.listdir(project) == []


@pytest.mark.parametrize("content", ["[]", "{}", '{"skills": [{"name": "x"}]}', "no json", '{"skills": 3}'])
def test_what_is_no_index_is_told(index: dict[str, Any], site: str, skillkit: Any, content: str) -> None:
    (index["folder"] / "index.json").write_text(content)
    assert "is no index of skills" in skillkit("add", site, code=125)["error"]["message"]


@pytest.mark.parametrize(
    ("key", "value"), [("name", "../up"), ("digest", "md5:1"), ("type", "program"), ("digest", "sha256:short")]
)
def test_an_entry_that_the_format_does_not_know_is_refused(
    index: dict[str, Any], site: str, skillkit: Any, project: Path, key: str, value: str
) -> None:
    index["skills"][0][key] = value
    (index["folder"] / "index.json").write_text(json.dumps({"skills": index["skills"]}))
    assert "cannot be taken" in skillkit("add", site, code=126)["error"]["message"]
    assert os.listdir(project) == []


def test_an_artifact_by_plain_http_is_refused(index: dict[str, Any], site: str, skillkit: Any) -> None:
    index["skills"][0]["url"] = "http://localhost:1/text.md"
    (index["folder"] / "index.json").write_text(json.dumps({"skills": index["skills"]}))
    assert "it is not https" in skillkit("add", site, code=126)["error"]["message"]


@contextmanager
def dripping(authority: trustme.CA, said: bytes, repeated: bytes) -> Iterator[int]:
    """A server by https that never ends: first all of one text, then a little of another, again and again."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    stop = threading.Event()

    def serve(server: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(server.accept()[0], server_side=True) as connection:
            connection.recv(4096)
            connection.sendall(said)
            while not stop.wait(0.2):
                connection.sendall(repeated)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()


@pytest.mark.parametrize(
    ("said", "repeated"),
    [(b"", b"H"), (b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"), (b"HTTP/1.1 200 OK\r\n\r\n", b"P")],
    ids=["status", "headers", "body"],
)
def test_a_server_that_says_a_little_for_ever_is_given_up(
    site: str, authority: trustme.CA, project: Path, skillkit: Any, said: bytes, repeated: bytes
) -> None:
    assert site
    with dripping(authority, said, repeated) as port:
        began = time.monotonic()
        error = skillkit("add", f"https://localhost:{port}/demo.zip", "--timeout", "1", code=125)["error"]["message"]
    assert "did not answer to the end within 1 seconds" in error or "more than 100 headers" in error
    assert time.monotonic() - began < 15
    assert os.listdir(project) == []


@pytest.fixture
def outside(site: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProxyOutside]:
    """A company's proxy: only it knows the name, and who stands behind it has a certificate of the company's own."""
    proxy = ProxyOutside({"skills.example.com:443": int(site.rpartition(":")[2])})
    with listening(proxy) as port:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield proxy


def test_behind_a_company_s_proxy_skills_come_from_git_and_from_a_site(
    index: dict[str, Any], repository: Repository, outside: ProxyOutside, project: Path, skillkit: Any
) -> None:
    repository.add_skill("alpha", {"scripts/run.sh": RUN})
    os.rename(repository.folder / ".git", repository.folder.parent / "skills.git")
    skillkit("add", "https://skills.example.com/skills.git")
    skillkit("add", "https://skills.example.com", "--skill", "packed")
    assert sorted(locked(project)) == ["alpha", "packed"]
    assert set(outside.asked) == {"skills.example.com:443"}
    assert index["skills"]


def test_behind_a_proxy_a_certificate_that_nobody_here_knows_is_refused(
    outside: ProxyOutside, index: dict[str, Any], project: Path, skillkit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when somebody else than the company answers for the name."""
    assert index["skills"]
    for name in ("SSL_CERT_FILE", "GIT_SSL_CAINFO"):
        monkeypatch.delenv(name)
    for source in ("https://skills.example.com/skills.git", "https://skills.example.com"):
        assert "certificate" in skillkit("add", source, code=125)["error"]["message"]
    assert outside.asked
    assert os.listdir(project) == []
