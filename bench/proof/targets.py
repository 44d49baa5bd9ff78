"""The doors through which somebody else's bytes come. Each: a folder of its own -> a call with one input.

A call may refuse in our own words (`SkillKitError`) and nothing else; whatever else it raises is a fault.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from bench.proof.inputs import chunks_of, json_value, mutated, real_files
from skillkit import GUARDED, SkillKitError, SkillManager, World

__all__ = ["SHARES", "TARGETS", "Call"]

Call = Callable[[random.Random], None]
_SCRIPTS = {"run.sh": "echo hi\n", "more.py": "print(1)\n"}
_BATCH = 50


def _text(chance: random.Random, *suffixes: str) -> str:
    return mutated(chance, real_files(*suffixes)).decode(
        "utf-8", chance.choice(("replace", "surrogateescape", "ignore"))
    )


def _write_skill(folder: Path, text: bytes = b"---\nname: fuzz\ndescription: d\n---\nRun `scripts/run.sh`.\n") -> Path:
    skill = folder / "skills" / "fuzz"
    (skill / "scripts").mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_bytes(text)
    for name, script in _SCRIPTS.items():
        (skill / "scripts" / name).write_text(script)
    return skill


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
        _write_skill(folder, b"---\nname: fuzz\ndescription: d\n---\n" + mutated(chance, real_files(".md")))
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
        _write_skill(folder, mutated(chance, real_files("SKILL.md")))
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
        (folder / name).write_bytes(mutated(chance, [seeds[name], *real_files(".toml", ".json")[:5]]))
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
        config_file(place, mutated(chance, seeds).decode("utf-8", "replace"))

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

    _write_skill(folder)
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
def _page(folder: Path) -> Iterator[Call]:
    """Raw requests to the approval page, signed in and not; it answers, never with its own failure."""
    import httpx

    from skillkit.web.server import PageServer

    with World(folder / "state") as world, PageServer(world) as server, httpx.Client(base_url=server.address) as client:
        client.get(server.login_url().removeprefix(server.address))
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        head = f"Host: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\nOrigin: {server.address}\r\n"
        paths = (
            "/",
            "/requests/x",
            "/history",
            "/audit?after=3&q=%00",
            "/api/requests",
            "/static/page.css",
            "/events",
            "/login?token=x",
        )
        seeds = [
            f"GET {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode() for path in paths if path != "/events"
        ]
        form = "token=x&option=yes_once&grants=a"
        seeds += [
            f"POST {path}/answer HTTP/1.1\r\n{head}Content-Length: {len(form)}\r\n\r\n{form}".encode()
            for path in paths[:2]
        ]

        def call(chance: random.Random) -> None:
            with socket.create_connection(("127.0.0.1", server.port), 10) as peer:
                with suppress(ConnectionError):
                    peer.sendall(mutated(chance, seeds))
                    peer.shutdown(socket.SHUT_WR)
                said = b""
                with suppress(ConnectionError):
                    said = peer.recv(12)
                if said.startswith(b"HTTP/1.1 5") and not said.startswith(b"HTTP/1.1 501"):
                    raise AssertionError(f"the page failed: {said!r}")

        yield call
        if client.get("/").status_code != httpx.codes.OK:
            raise AssertionError("the page does not answer any more")


@contextmanager
def _mcp(folder: Path) -> Iterator[Call]:
    """Many lines to one MCP server over stdio; it lives, says no traceback, and answers what is right."""
    _write_skill(folder)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
    messages: tuple[tuple[str, dict[str, object]], ...] = (
        ("tools/list", {}), ("resources/list", {}), ("prompts/list", {}), ("ping", {}),
        ("tools/call", {"name": "load_skill", "arguments": {"skill_name": "fuzz"}}),
        ("tools/call", {"name": "read_skill_file", "arguments": {"skill_name": "fuzz", "path": "SKILL.md"}}),
        ("resources/read", {"uri": "skill://fuzz/SKILL.md"}), ("completion/complete", {"ref": {}}),
    )  # fmt: skip

    def line(number: object, method: str, parameters: object) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}).encode()

    seeds = [line(7, *message) for message in messages]
    words = [
        sys.executable,
        "-m",
        "skillkit",
        "mcp",
        "--skills",
        str(folder / "skills"),
        "--state-dir",
        str(folder / "state"),
        "--run-on-load",
        "never",
    ]

    def call(chance: random.Random) -> None:
        noise = [mutated(chance, seeds).replace(b"\n", b" ").replace(b"\r", b" ") for _ in range(_BATCH)]
        known = [line(0, "initialize", hello), b'{"jsonrpc":"2.0","method":"notifications/initialized"}']
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
            said, complaint = server.communicate(
                b"\n".join([*known, *noise, line("last", "tools/list", {}), b""]), timeout=120
            )
        if b'"last"' not in said or b"Traceback" in complaint:
            raise AssertionError(f"the server gave up: {complaint[-2000:].decode('utf-8', 'replace')}")

    yield call


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
    "tools": _tools,
    "page": _page,
    "MCP": _mcp,
}
SHARES = {
    "frontmatter": 15,
    "skills": 3,
    "inline": 14,
    "shell words": 8,
    "references": 3,
    "needs": 14,
    "risks": 10,
    "masking": 8,
    "locks": 8,
    "configuration": 6,
    "hosts": 7,
    "tools": 2,
    "page": 1,
    "MCP": 1,
}
"""Of a hundred inputs; the last three cross a process, a socket or a database for each."""
os.environ.setdefault("PYTHONWARNINGS", "ignore")
