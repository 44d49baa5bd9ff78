"""Runs that go on -> the hosts that they reached and what they wrote so far, for every process of the world to see.

Theory of operation. Only a run that used a host, or that was approved on the page, has a row, from half a second after
that on, and a new one at most twice a second: most runs write nothing here. The row goes with the run; one with output
stays for some minutes after it, since most runs are over before anybody can look, and goes with its process. One of a
process that was killed stays behind; nobody is shown it, and the next run that tells of itself removes it.
"""

from __future__ import annotations

import codecs
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.store.base import Connection, Store
from skillkit.core.values.hosts import HostUse
from skillkit.core.values.masking import Masker
from skillkit.core.values.questions import OptionAnswer
from skillkit.core.values.runs import PreparedRun, RunControl, ScriptCommand
from skillkit.core.values.text import storable

__all__ = ["KEPT_SECONDS", "SHOWN_CHARACTERS", "Output", "RunningRun", "RunningRuns", "Telling"]

KEPT_SECONDS = 600.0
SHOWN_CHARACTERS = 16_000
"""Of what a run wrote, the last; a person who wants all of it asks whoever started it."""
PAGE = "web"
NEWS_SECONDS = 0.5
STOP_SECONDS = 5.0
_SELECT = "select run, process, skill, script, session, began_at, hosts, written, ended_at from running order by run"
_KEEP = """insert into running (run, process, skill, script, session, began_at, hosts, output, written, ended_at)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (run) do update set hosts = excluded.hosts,
    output = excluded.output, written = excluded.written, ended_at = excluded.ended_at"""
_REMOVE = "delete from running where run = ?"


class RunningRun(NamedTuple):
    """A run that goes on or just ended, by the number of the record of its start."""

    run: int
    skill: str
    script: str
    session: str
    began_at: float
    hosts: tuple[HostUse, ...]
    written: int = 0
    """Characters that it wrote so far, where they are kept to be shown."""
    ended_at: float = 0.0
    """0 while it goes on."""


class Output(NamedTuple):
    """The last that a run wrote, piece by piece in its order, and how many characters came before that."""

    pieces: tuple[tuple[str, str], ...] = ()
    """Each with its stream."""
    left_out: int = 0


class RunningRuns:
    """Of one world; what this process told of is gone when it closes."""

    def __init__(self, store: Store, clean: Callable[[str], str] = str) -> None:
        """`clean` takes secrets out of a text by their shape."""
        self._store, self._clean = store, clean
        self._kept: set[int] = set()

    def all(self, *, with_ended: bool = False) -> list[RunningRun]:
        """The oldest first; looking makes no file."""
        if not self._store.exists():
            return []
        with self._store.connection() as connection:
            rows, now = connection.execute(_SELECT).fetchall(), self._store.now()
        return [
            RunningRun(run, skill, script, session, began, tuple(HostUse(*each) for each in json.loads(hosts)), *rest)
            for run, process, skill, script, session, began, hosts, *rest in rows
            if now.is_running(process) and _is_shown(rest[-1], now.wall, with_ended=with_ended)
        ]

    def output_of(self, run: int) -> Output:
        """Nothing for a run that nobody is told of, or not any more."""
        if not self._store.exists():
            return Output()
        with self._store.connection() as connection:
            row = connection.execute(
                "select output, written, ended_at, process from running where run = ?", (run,)
            ).fetchone()
            now = self._store.now()
        if row is None or not now.is_running(row[3]) or not _is_shown(row[2], now.wall, with_ended=True):
            return Output()
        pieces = tuple((str(stream), str(text)) for stream, text in json.loads(row[0] or "[]"))
        return Output(pieces, row[1] - sum(len(text) for _, text in pieces))

    @contextmanager
    def listening(
        self,
        run: int,
        prepared: PreparedRun,
        answer: OptionAnswer | None,
        masker: Masker,
        way_out: object,
    ) -> Iterator[Callable[[RunControl], RunControl]]:
        """What makes of a run's control one that tells of the run here, as long as this is open.

        Of hosts where it has a way out, and of what it writes where a person approved it on the page, since they can
        look there; of other runs nothing.
        """
        shows_output = PAGE in (prepared.channel, answer.channel if answer else "")
        if not shows_output and way_out is None:
            yield lambda control: control
            return
        with self.telling(run, prepared.command, masker) as told:
            yield told.all_of if shows_output else told.hosts_of

    @contextmanager
    def telling(self, run: int, command: ScriptCommand, masker: Masker) -> Iterator[Telling]:
        """That the store is away for a while ends no run."""
        written, began = _Written(masker, self._clean), time.time()
        told = Telling(
            written, lambda hosts, ended_at: self._keep(run, command, began, masker, hosts, written, ended_at)
        )
        try:
            yield told
        finally:
            told.close()
            if written.count:
                told.keep(ended_at=time.time())
                self._kept.add(run)
            elif told.is_there:
                self._remove([run])

    def close(self) -> None:
        """Nothing that a script wrote outlives who started it."""
        kept, self._kept = self._kept, set()
        if kept:
            self._remove(kept)

    def _remove(self, runs: Sequence[int] | set[int]) -> None:
        with suppress(StateUnavailableError), self._store.transaction() as connection:
            connection.executemany(_REMOVE, [(run,) for run in runs])

    def _keep(
        self,
        run: int,
        command: ScriptCommand,
        began: float,
        masker: Masker,
        hosts: Sequence[HostUse],
        written: _Written,
        ended_at: float,
    ) -> None:
        names = map(storable, (command.skill_name, command.script_name, command.session_id or ""))
        pieces, count = written.shown(is_all=ended_at > 0)
        with self._store.transaction() as connection:
            now = self._store.now()
            if connection.execute("select 1 from running where run = ?", (run,)).fetchone() is None:
                _tidy(connection, now.is_running, now.wall)
            row = (run, now.mark(), *names, began, json.dumps(masker.mask_all(hosts)), json.dumps(pieces), count)
            connection.execute(_KEEP, (*row, ended_at))


def _is_shown(ended_at: float, now: float, *, with_ended: bool) -> bool:
    return not ended_at or (with_ended and now - ended_at < KEPT_SECONDS)


def _tidy(connection: Connection, is_running: Callable[[str], bool], now: float) -> None:
    """With the first row of a run, those go whose time is over, and those of processes that were killed."""
    rows = connection.execute(_SELECT).fetchall()
    over = [(row[0],) for row in rows if not is_running(row[1]) or not _is_shown(row[-1], now, with_ended=True)]
    connection.executemany(_REMOVE, over)


class Telling:
    """Hears a run, and keeps what it heard now and then, in a thread of its own: no run waits for the store."""

    def __init__(self, written: _Written, keep: Callable[[Sequence[HostUse], float], None]) -> None:
        self._written, self._keep = written, keep
        self._hosts: Sequence[HostUse] = ()
        self._lock, self._is_over = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self.is_there = False

    def all_of(self, control: RunControl) -> RunControl:
        """Beside whoever listens already."""
        before = control.on_output

        def hear(stream: str, data: bytes) -> None:
            self.output(stream, data)
            if before is not None:
                before(stream, data)

        return self.hosts_of(control)._replace(on_output=hear)

    def hosts_of(self, control: RunControl) -> RunControl:
        return control._replace(on_hosts=self.hosts)

    def hosts(self, hosts: Sequence[HostUse]) -> None:
        self._hosts = hosts
        self.keep()

    def output(self, stream: str, data: bytes) -> None:
        self._written.hear(stream, data)
        if self._thread is None:
            self._thread = threading.Thread(target=self._tell, name="skillkit run news", daemon=True)
            self._thread.start()

    def keep(self, ended_at: float = 0.0) -> None:
        with self._lock, suppress(StateUnavailableError):
            if ended_at or not self._is_over.is_set():
                self._keep(self._hosts, ended_at)
                self.is_there = True

    def _tell(self) -> None:
        told = 0
        while not self._is_over.wait(NEWS_SECONDS):
            before, told = told, self._written.count
            if told != before:
                self.keep()

    def close(self) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)


class _Written:
    """The last of what a run wrote, as text without secrets."""

    def __init__(self, masker: Masker, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._lock = threading.Lock()
        self._pieces: list[list[str]] = []
        self.count = 0
        decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        self._streams = {
            name: masker.stream(lambda data, name=name: self._add(name, decoders[name].decode(data)))  # type: ignore[misc]
            for name in decoders
        }

    def hear(self, stream: str, data: bytes) -> None:
        with self._lock:
            self._streams[stream].feed(data)

    def _add(self, stream: str, text: str) -> None:
        """Twice as much as is shown, so that a secret at the cut is known before it is cut in two."""
        self.count += len(text)
        if self._pieces and self._pieces[-1][0] == stream:
            self._pieces[-1][1] += text
        else:
            self._pieces.append([stream, text])
        self._pieces = _last(self._pieces, 2 * SHOWN_CHARACTERS)

    def shown(self, *, is_all: bool) -> tuple[list[list[str]], int]:
        """With the count of all that was written; `is_all` says that nothing more comes."""
        with self._lock:
            if is_all:
                for stream in self._streams.values():
                    stream.close()
            pieces, count = [[*piece] for piece in self._pieces], self.count
        raw = sum(len(text) for _, text in pieces)
        cleaned = [[stream, storable(self._clean(text))] for stream, text in pieces]
        # A mask has another length than what it stands for: counted is what a reader could be shown.
        count += sum(len(text) for _, text in cleaned) - raw
        return _last(cleaned, SHOWN_CHARACTERS), count


def _last(pieces: list[list[str]], limit: int) -> list[list[str]]:
    """The end of it; of the first piece that is left, the end."""
    more = sum(len(text) for _, text in pieces) - limit
    while more > 0 and pieces:
        (stream, text), *rest = pieces
        pieces = [[stream, text[more:]], *rest] if len(text) > more else rest
        more -= len(text)
    return pieces
