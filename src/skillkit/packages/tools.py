"""A tool that speaks to an index -> the same inside walls: its own folders, the index's hosts, and nothing else."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.paths import real_path
from skillkit.core.run.hosts.upstream import upstreams_in
from skillkit.core.run.hosts.way_out import WayOut
from skillkit.core.run.own_programs import find_own_program, own_environment
from skillkit.core.run.process import ProcessRequest, run_confined, run_process
from skillkit.core.run.sandbox.base import Reach
from skillkit.core.run.sandbox.machine import interpreter_paths
from skillkit.core.run.sandbox.network import certificates_of
from skillkit.core.run.tiers import sandbox_for
from skillkit.core.values.hosts import NOT_LISTED, HostUse
from skillkit.core.values.policy import Limits, ScriptPolicy
from skillkit.core.values.text import on_one_line
from skillkit.packages.values import PackagesError

__all__ = [
    "TOOL_SECONDS",
    "Hosts",
    "Said",
    "ask_tool",
    "failure_of",
    "node_program",
    "npm_program",
    "run_tool",
    "uv_program",
]

ROOMY = Limits(data_megabytes=8192, file_megabytes=4096, processes=1024, open_files=4096, temporary_megabytes=1024)
TOOL_SECONDS = 900.0
QUESTION_SECONDS = 20.0
OUTPUT_BYTES = 8_000_000
POLL_SECONDS = 0.2
WORDS = 1_200
PROJECTS = " outside of projects, where scripts may have put one"
EXTRA = "pip install 'skillkit-runtime[packages]'"


@dataclass(frozen=True, slots=True)
class Hosts:
    """What a tool may reach: rules for hosts, and services of the user's own on this very machine."""

    rules: tuple[str, ...] = ()
    own_services: frozenset[tuple[str, int]] = frozenset()
    other_services: frozenset[tuple[str, int]] = frozenset()
    """Of the network that those lie in, and never on this machine."""


@dataclass(frozen=True, slots=True)
class Said:
    """How a tool ended, and what it wrote."""

    status: int
    stdout: str
    stderr: str
    timed_out: bool
    hosts: tuple[HostUse, ...] = ()


def uv_program() -> str:
    """The one that was installed with us, else the one on PATH."""
    beside = Path(sys.executable).with_name("uv")
    try:
        from uv import find_uv_bin
    except ImportError:
        found = find_own_program("uv") or (str(beside) if os.path.isfile(beside) else "")
    else:
        found = find_uv_bin()
    if not found:
        raise PackagesError(f"uv, which finds and installs packages, is not here. Install it: {EXTRA}")
    return real_path(found)


def npm_program() -> str:
    found = find_own_program("npm")
    if not found:
        raise PackagesError(
            f"npm, which finds and installs packages of Node, is not on PATH{PROJECTS}. Install Node with npm."
        )
    return found


def node_program() -> str:
    found = find_own_program("node")
    if not found:
        raise PackagesError(f"node is not on PATH{PROJECTS}. Install Node.")
    return found


def ask_tool(argv: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Said:
    """Without walls and with the person's own environment: for what their settings say. It starts in `folder`."""
    given = {**own_environment(), **(environment or {})}
    ended = run_process(ProcessRequest(tuple(argv), str(folder), given, b"", QUESTION_SECONDS, OUTPUT_BYTES))
    return Said(ended.status, _text(ended.stdout), _text(ended.stderr), ended.timed_out)


def run_tool(
    argv: Sequence[str],
    *,
    work: Path,
    programs: Sequence[str],
    environment: Mapping[str, str],
    hosts: Hosts,
    writable: Sequence[Path] = (),
    timeout: float = TOOL_SECONDS,
    on_bytes: Callable[[int], None] | None = None,
    cancel: threading.Event | None = None,
) -> Said:
    """Inside walls: `work` and `writable` are all that it can change, `programs` what it is made of."""
    from skillkit.core.values.runs import RunControl

    sandbox = sandbox_for(ScriptPolicy(allow_scripts=True, sandbox="required"))
    if not sandbox.opens_hosts:
        raise SandboxUnavailableError.because(
            f"Packages are found and installed inside walls that open their index alone, and the {sandbox.tier} walls "
            "cannot open single hosts",
            "Install bubblewrap; 'skillkit doctor' says more.",
            missing=("hosts",),
        )
    empty = work / "empty"
    empty.mkdir(exist_ok=True)
    home = os.path.expanduser("~")
    folders = {path for program in programs for path in interpreter_paths(program, home=home)}
    reach = Reach(
        skill=real_path(empty),
        snapshot=None,
        work=real_path(work),
        interpreter=tuple(sorted(folders)),
        writable=tuple(real_path(path) for path in writable),
        hosts=hosts.rules or ("localhost",),
        certificates=certificates_of(os.environ),
        limits=ROOMY,
        timeout=timeout,
    )
    upstreams = upstreams_in(os.environ)
    way_out = WayOut(hosts.rules, upstreams, own_services=hosts.own_services, other_services=hosts.other_services)
    confined = sandbox.confine(tuple(argv), real_path(work), _plain(environment), reach)
    # An index on this machine's loopback is reached by the proxy too: inside, loopback is another.
    told = {**confined.environment, "NO_PROXY": "", "no_proxy": ""}
    with way_out.around(confined._replace(environment=told)) as inside, _counting(way_out, on_bytes):
        ended = run_confined(inside, b"", timeout, OUTPUT_BYTES, RunControl(cancel))
    return Said(ended.status, _text(ended.stdout), _text(ended.stderr), ended.timed_out, way_out.used())


def _plain(environment: Mapping[str, str]) -> dict[str, str]:
    """What a tool is told, and of the caller's own only what is no setting of such tools."""
    kept = ("LANG", "LC_ALL", "TZ")
    own = {name: os.environ[name] for name in kept if name in os.environ}
    return {"PATH": os.defpath, **own, **environment}


@contextmanager
def _counting(way_out: WayOut, on_bytes: Callable[[int], None] | None) -> Iterator[None]:
    """Tells how much came in, while it comes."""
    if on_bytes is None:
        yield
        return
    over = threading.Event()

    def count() -> None:
        while not over.wait(POLL_SECONDS):
            on_bytes(sum(each.received for each in way_out.used()))

    thread = threading.Thread(target=count, name="skillkit packages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def failure_of(tool: str, said: Said, what: str) -> PackagesError:
    """Why it failed, with the tool's own last words."""
    if said.timed_out:
        return PackagesError(f"{what}: {tool} was stopped, because the index takes too long. Try again later.")
    unreached = sorted({each.refused for each in said.hosts if each.refused and not each.refused.endswith(NOT_LISTED)})
    if unreached:
        return PackagesError(f"{what}: {'; '.join(unreached[:3])}. Check the network, and the index that you set.")
    refused = sorted({each.host for each in said.hosts if each.refused})
    if refused:
        return PackagesError(
            f"{what}: {tool} was sent to {', '.join(refused[:5])}, which the pages of the index do not name. "
            "Check the index that you set."
        )
    words = " ".join(on_one_line(line) for line in said.stderr.splitlines() if line.strip())
    hint = ""
    if "no usable wheels" in words or "no wheels" in words or "building source" in words:
        hint = " Only wheels are installed, since a source package runs its own code when it is built."
    return PackagesError(f"{what}. {tool} says: {words[-WORDS:] or 'nothing'}{hint}")
