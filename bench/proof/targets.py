"""The doors through which somebody else's bytes come. Each: a folder of its own -> a call with one input.

A call may refuse in our own words (`SkillKitError`) and nothing else; whatever else it raises is a fault.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from bench.proof.inputs import chunks_of, json_value, mutated, real_files
from bench.proof.servers import Call, mcp, mcp_over_http, page, write_skill
from skillkit import GUARDED, SkillKitError, SkillManager

if TYPE_CHECKING:
    from skillkit.sources.listing import Tree

__all__ = ["SHARES", "TARGETS", "Call"]


def _text(chance: random.Random, *suffixes: str) -> str:
    return mutated(chance, real_files(*suffixes)).decode(
        "utf-8", chance.choice(("replace", "surrogateescape", "ignore"))
    )


@contextmanager
def _pure(call: Call) -> Iterator[Call]:
    yield call


def _frontmatter(chance: random.Random) -> None:
    from skillkit.core.models.frontmatter import read_frontmatter, split_tools, text_of

    raw = mutated(chance, real_files("SKILL.md"))
    fields = dict(read_frontmatter(raw if chance.random() < 0.5 else b"---\nname: a\n" + raw + b"\n---\nBody").fields)
    text_of(fields)
    split_tools(fields.get("allowed-tools"))


def _inline(chance: random.Random) -> None:
    from skillkit.core.models.shell import split_words
    from skillkit.integrations.inline import Command, InlineParser, Text
    from skillkit.integrations.inline.processor import defuse

    def read(chunks: Sequence[str]) -> list[object]:
        parser, joined = InlineParser(), list[object]()
        for event in [*(event for chunk in chunks for event in parser.feed(chunk)), *parser.finish()]:
            if isinstance(event, Text) and joined and isinstance(joined[-1], Text):
                joined[-1] = Text(joined[-1].text + event.text)
            else:
                joined.append(event)
        return joined

    text = _text(chance, ".md")
    whole = read([text])
    if read(list(chunks_of(chance, text))) != whole:
        raise AssertionError("other chunks, other commands")
    for event in whole:
        if isinstance(event, Command):
            split_words(event.body, keeps_braces=True)
    if any(isinstance(event, Command) for event in read([defuse(text)])):
        raise AssertionError("a command is left in defused text")


def _shell(chance: random.Random) -> None:
    from skillkit.core.find.references.commands import invocation_in, simple_commands
    from skillkit.core.find.references.passages import passages_in
    from skillkit.core.models.shell import commands_in

    text = _text(chance, ".md", ".sh")
    commands_in(text)
    for passage in passages_in(text):
        for command in simple_commands(passage.text):
            invocation_in(command.words)


@contextmanager
def _references(folder: Path) -> Iterator[Call]:
    from skillkit.core.find.references import references_in

    def call(chance: random.Random) -> None:
        write_skill(folder, b"---\nname: fuzz\ndescription: d\n---\n" + mutated(chance, real_files(".md")))
        with _manager(folder) as manager:
            references_in(manager.load_skill("fuzz"))

    yield call


@contextmanager
def _skills(folder: Path) -> Iterator[Call]:
    """Whatever one SKILL.md holds, the other skill is found and what is wrong is told."""
    other = folder / "skills" / "other"
    other.mkdir(parents=True)
    (other / "SKILL.md").write_text("---\nname: other\ndescription: d\n---\n")

    def call(chance: random.Random) -> None:
        write_skill(folder, mutated(chance, real_files("SKILL.md")))
        with _manager(folder) as manager:
            manager.discover()
            names = [skill.name for skill in manager.list_skills()]
            if "other" not in names:
                raise AssertionError(f"one skill hid the other: {names}")
            for name in names:
                with suppress(SkillKitError):
                    manager.invoke_skill(name, "a 'b c' $1")
                    list(manager.list_scripts(name))

    yield call


def _manager(folder: Path) -> SkillManager:
    return SkillManager(folder / "skills", "", [], [], state_dir=folder / "state", policy=GUARDED)


def _needs(chance: random.Random) -> None:
    from skillkit.core.find.needs.installing import instructed_facts
    from skillkit.core.find.needs.javascript_code import javascript_facts
    from skillkit.core.find.needs.manifests import block_facts, manifest_facts
    from skillkit.core.find.needs.python_code import python_facts
    from skillkit.core.find.needs.shell_code import shell_facts

    readers: tuple[tuple[Callable[[str], object], tuple[str, ...]], ...] = (
        (python_facts, (".py",)),
        (shell_facts, (".sh",)),
        (javascript_facts, (".mjs",)),
        (instructed_facts, (".md",)),
        (block_facts, (".py",)),
        (lambda text: manifest_facts("requirements.txt", text), (".txt", ".py")),
        (lambda text: manifest_facts("pyproject.toml", text), (".toml",)),
        (lambda text: manifest_facts("package.json", text), (".json",)),
    )
    reader, suffixes = chance.choice(readers)
    reader(_text(chance, *suffixes))


def _risks(chance: random.Random) -> None:
    from skillkit.core.ask.risk import findings_in
    from skillkit.core.ask.risk.files import SkillFile

    language, suffix = chance.choice(
        (("python", ".py"), ("shell", ".sh"), ("javascript", ".mjs"), ("markdown", ".md"), ("package", ".json"))
    )
    text = _text(chance, suffix)
    for finding in findings_in(SkillFile("scripts/x", language, text, len(text)), 100_000):
        finding.message.encode()


def _masking(chance: random.Random) -> None:
    from skillkit.core.record.redaction import redacted_arguments, redacted_text

    redacted_text(_text(chance, ".md", ".sh", ".json"))
    words = ("--token", "password", "api_key=abcd", "sk-" + "a1" * 20, "https://u:p@h/")
    redacted_arguments(json_value(chance, words), [str(json_value(chance, words, 0)) for _ in range(3)])


@contextmanager
def _locks(folder: Path) -> Iterator[Call]:
    from skillkit.packages.skill_lock import npm_lock_of, python_pins_of
    from skillkit.sources.lock import read_lock

    skills = (
        b'version = 1\n[skill.pdf]\nsource = "owner/repo"\nref = "v1"\ncommit = "%s"\n'
        b'path = "skills/pdf"\ndigest = "%s"\nsigner = ""\n'
    )
    pins = b"pypdf==5.1.0 \\\n    --hash=sha256:%s\nopenpyxl==3.1.5 --hash=sha256:%s  # via x\n-r other.txt\n"
    entry = b'"node_modules/a": {"version": "1.0.0", "integrity": "sha512-%s"}'
    node = b'{"lockfileVersion": 3, "packages": {"": {}, ' + entry + b"}}"
    digests = (b"a" * 40, b"b" * 64)
    seeds = {"skills.lock": skills % digests, "requirements.lock": pins % digests, "package-lock.json": node % b"YQ=="}
    readers: dict[str, Callable[[Path], object]] = {
        "skills.lock": lambda place: read_lock(place / "skills.lock"),
        "requirements.lock": python_pins_of,
        "package-lock.json": npm_lock_of,
    }

    def call(chance: random.Random) -> None:
        name = chance.choice(list(seeds))
        (folder / name).write_bytes(
            mutated(
                chance, [seeds[name]] * 9 + [*real_files(".toml", ".json")[:1]], most=2, is_inside=chance.random() < 0.7
            )
        )
        try:
            readers[name](folder)
        finally:
            (folder / name).unlink()

    yield call


@contextmanager
def _config(folder: Path) -> Iterator[Call]:
    from skillkit.config.files import Place
    from skillkit.config.keys import config_file

    place = Place("project", folder / "skillkit.toml")
    seeds = (
        b'[policy]\napproval = "always"\nallowed_hosts = ["a.example"]\ntimeout_seconds = 5\n',
        *real_files(".toml"),
    )

    def call(chance: random.Random) -> None:
        config_file(place, mutated(chance, seeds, most=2, is_inside=chance.random() < 0.7).decode("utf-8", "replace"))

    yield call


def _hosts(chance: random.Random) -> None:
    from skillkit.core.run.hosts.requests import Body, RequestError, parse_request
    from skillkit.core.values.hosts import HostRule

    seeds = (
        b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n",
        b"GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc",
        b"POST http://a.b/ HTTP/1.1\r\nHost: a.b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    )
    head, _, rest = mutated(chance, seeds).partition(b"\r\n\r\n")
    with suppress(RequestError):
        parse_request(head + b"\r\n\r\n")
        Body(None).take(rest)
    HostRule.from_id(
        mutated(chance, (b"*.example.org", b"api.example.com:8443", b"xn--a.b private", b"[::1]:80")).decode(
            "utf-8", "replace"
        )
    )


@contextmanager
def _tools(folder: Path) -> Iterator[Call]:
    """What a model sends: arguments of any shape to tools of any name. Nobody can say yes, so nothing runs."""
    from skillkit.integrations.functions import SkillFunctions

    write_skill(folder)
    words = (
        "fuzz",
        "scripts/run.sh",
        "run",
        "../../etc/passwd",
        "SKILL.md",
        "skill_name",
        "script",
        "args",
        "input",
        "path",
        "query",
        "é\u202e",
    )
    names = ("load_skill", "skills_run_script", "read_skill_file", "find_skills", "nonsense", "")
    shapes = (
        lambda value, _: value,
        lambda value, _: {"skill_name": "fuzz", "script": "scripts/run.sh", "args": value},
        lambda value, _: {"skill_name": "fuzz", "script": value, "input": value},
        lambda value, _: {"skill_name": "fuzz", "path": value},
        lambda value, _: {"skill_name": value, "query": value},
        lambda value, chance: mutated(chance, [json.dumps(value).encode()]).decode("utf-8", "replace"),
    )
    with _manager(folder) as manager:
        functions = SkillFunctions(manager)

        def call(chance: random.Random) -> None:
            arguments = chance.choice(shapes)(json_value(chance, words), chance)
            result = functions.call(chance.choice(names), arguments)
            result.content.encode()

        yield call


@contextmanager
def _archives(folder: Path) -> Iterator[Call]:
    """Archives and the index of a site, as somebody else's server gives them; what is chosen there is not written."""
    from skillkit.sources import index
    from skillkit.sources.archives import ArchiveTree
    from skillkit.sources.choosing import choose_skills

    made, packed = io.BytesIO(), io.BytesIO()
    files = {"demo/SKILL.md": b"---\nname: demo\ndescription: d\n---\n", "demo/scripts/run.sh": b"echo hi\n" * 20}
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in files.items():
            archive.writestr(name, content)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    plain = gzip.decompress(packed.getvalue())
    digest = f"sha256:{sha256(made.getvalue()).hexdigest()}"
    entry = {"name": "demo", "type": "archive", "url": "demo.zip", "digest": digest, "description": "d"}
    site = json.dumps({"skills": [entry, {**entry, "name": "two", "type": "skill-md"}]}).encode()

    def call(chance: random.Random) -> None:
        kind = chance.randrange(4)
        if kind == 3:
            answers = iter((mutated(chance, [site], most=3), made.getvalue(), *files.values()))
            index.download = lambda *_, **__: next(answers, b"")
            tree: Tree = index.IndexTree("https://a.example/.well-known/agent-skills/index.json", (), seconds=1)
        elif kind == 2:
            tree = ArchiveTree("a.tar.gz", gzip.compress(mutated(chance, [plain], most=3), 1))
        else:
            tree = ArchiveTree("a", mutated(chance, [(made, packed)[kind].getvalue()], most=3))
        choose_skills(tree, "", (), fallback=folder.name)

    yield call


def _signatures(chance: random.Random) -> None:
    """What stands in SKILL.sig; half of them come so far that ssh-keygen is asked."""
    from skillkit.sources.signatures import FORMAT, check_signature

    head = f"{FORMAT}\nsigned 2026-01-02T03:04:05Z\n".encode()
    armor = (
        b"-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg\n-----END SSH SIGNATURE-----\n"
    )
    if chance.random() < 0.02:
        check_signature("demo", "a" * 64, head + mutated(chance, [armor], most=3), None)
    else:
        check_signature("demo", "a" * 64, mutated(chance, [head]) + armor, None)


TARGETS: dict[str, Callable[[Path], AbstractContextManager[Call]]] = {
    "frontmatter": lambda _: _pure(_frontmatter),
    "skills": _skills,
    "inline": lambda _: _pure(_inline),
    "shell words": lambda _: _pure(_shell),
    "references": _references,
    "needs": lambda _: _pure(_needs),
    "risks": lambda _: _pure(_risks),
    "masking": lambda _: _pure(_masking),
    "locks": _locks,
    "configuration": _config,
    "hosts": lambda _: _pure(_hosts),
    "archives": _archives,
    "signatures": lambda _: _pure(_signatures),
    "tools": _tools,
    "page": page,
    "MCP": mcp,
    "MCP over HTTP": mcp_over_http,
}
SHARES = {
    "frontmatter": 13,
    "skills": 3,
    "inline": 14,
    "shell words": 8,
    "references": 3,
    "needs": 13,
    "risks": 10,
    "masking": 8,
    "locks": 8,
    "configuration": 6,
    "hosts": 7,
    "archives": 2,
    "signatures": 1,
    "tools": 1,
    "page": 1,
    "MCP": 1,
    "MCP over HTTP": 1,
}
"""Of a hundred inputs; the last four cross a process, a socket or a database for each."""
os.environ.setdefault("PYTHONWARNINGS", "ignore")
