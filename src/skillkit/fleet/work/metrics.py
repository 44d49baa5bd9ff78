"""A worker, and the world that it works for -> numbers to watch, as Prometheus reads them.

No label has values that somebody from outside can make up: queues are those that this worker takes from, everything
else is of a fixed set. What a worker did is counted here; what a world has is asked of the database when somebody
looks.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any, Protocol

from skillkit.core.exceptions import ConfigurationError, StateUnavailableError
from skillkit.fleet.rows import Rows
from skillkit.fleet.work.keeping import Keeper
from skillkit.fleet.work.spool import Spool

__all__ = ["METRICS_TYPE", "MetricsServer", "Performed", "metrics_text"]

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)
OUTCOMES = ("finished", "refused", "cancelled", "lost", "spooled", "fault")
OPEN = ("waiting", "queued", "running")
ENDED = ("finished", "refused", "lost", "cancelled", "expired")
ENDED_SECONDS = 300.0
OTHER_QUEUES = "other"
MOST_CALLERS = 8
CALLER_SECONDS = 5.0

_QUEUES = """select queue, count(*), max(seconds_now() - created_at) from runs where state = 'queued' group by queue"""
_OPEN = "select state, count(*) from runs where state in ('waiting', 'queued', 'running') group by state"
_ENDED = "select state, count(*) from runs where ended_at > seconds_now() - ? group by state"
_WORKERS = "select count(*) from workers where seen_at > seconds_now() - 60"


class Performed:
    """What one worker has done so far; many threads count at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    @contextmanager
    def run(self) -> Iterator[Callable[[str], str]]:
        """For a run that was claimed; who performs it says what came of it."""
        started, outcome = time.monotonic(), "fault"

        def say(what: str) -> str:
            nonlocal outcome
            outcome = what if what in OUTCOMES else "fault"
            return what

        try:
            yield say
        finally:
            self._note(outcome, time.monotonic() - started)

    def _note(self, outcome: str, seconds: float) -> None:
        with self._lock:
            self._outcomes[outcome] += 1
            self._buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds += seconds

    def lines(self) -> Iterator[str]:
        with self._lock:
            outcomes, buckets, seconds = dict(self._outcomes), list(self._buckets), self._seconds
        yield from _described("skillkit_worker_runs_total", "counter", "Runs that this worker performed, by outcome.")
        yield from (f'skillkit_worker_runs_total{{outcome="{name}"}} {count}' for name, count in outcomes.items())
        name = "skillkit_worker_run_seconds"
        yield from _described(name, "histogram", "From the claim of a run to its end.")
        count = 0
        for limit, more in zip((*BUCKETS, "+Inf"), buckets, strict=True):
            count += more
            yield f'{name}_bucket{{le="{limit}"}} {count}'
        yield f"{name}_sum {seconds:.6f}"
        yield f"{name}_count {count}"


class Watched(Protocol):
    """What is looked at of a worker."""

    performed: Performed
    keeper: Keeper
    spool: Spool
    rows: Rows


def metrics_text(worker: Watched, queues: Sequence[str]) -> str:
    """All of it, in Prometheus's text format."""
    return "\n".join([*worker.performed.lines(), *_worker_lines(worker), *_world_lines(worker, queues), ""])


def _worker_lines(worker: Watched) -> Iterator[str]:
    keeper = worker.keeper
    yield from _gauge("skillkit_worker_running", "Runs that this worker holds now.", keeper.running)
    spooled = sum(1 for _ in worker.spool.all())
    yield from _gauge("skillkit_worker_spooled", "Ends of runs that could not be recorded yet.", spooled)
    for name, help_text, value in (
        ("skillkit_worker_lease_renewals_total", "Leases that were renewed.", keeper.renewals),
        ("skillkit_worker_leases_lost_total", "Runs stopped because they were not ours any more.", keeper.losses),
        ("skillkit_worker_store_outages_total", "How often the shared world could not be reached.", keeper.outages),
    ):
        yield from _described(name, "counter", help_text)
        yield f"{name} {value}"


def _world_lines(worker: Watched, queues: Sequence[str]) -> Iterator[str]:
    try:
        with worker.rows.store.connection() as connection:
            open_now = dict(connection.execute(_OPEN).fetchall())
            ended = dict(connection.execute(_ENDED, (ENDED_SECONDS,)).fetchall())
            queued = connection.execute(_QUEUES).fetchall()
            workers = connection.execute(_WORKERS).fetchone()[0]
    except StateUnavailableError:
        yield from _gauge("skillkit_store_up", "Whether the shared world can be reached.", 0)
        return
    yield from _gauge("skillkit_store_up", "Whether the shared world can be reached.", 1)
    yield from _gauge("skillkit_workers", "Workers of the world that were seen in the last minute.", workers)
    yield from _gauges("skillkit_runs", "Runs of the world that are not over, by state.", "state", OPEN, open_now)
    name, about = "skillkit_runs_ended_recently", "Runs of the world that ended in the last five minutes, by state."
    yield from _gauges(name, about, "state", ENDED, ended)
    lengths: Counter[str] = Counter()
    for queue, length, _ in queued:
        lengths[queue if queue in queues else OTHER_QUEUES] += length
    name, about = "skillkit_queue_length", "Runs that wait for a worker; of other workers' queues the sum."
    yield from _gauges(name, about, "queue", (*queues, OTHER_QUEUES), lengths)
    oldest = max((age for _, _, age in queued), default=0.0)
    yield from _gauge("skillkit_queue_oldest_seconds", "How long the oldest queued run has waited.", f"{oldest:.3f}")


def _described(name: str, kind: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _gauge(name: str, help_text: str, value: float | str) -> Iterator[str]:
    yield from _described(name, "gauge", help_text)
    yield f"{name} {value}"


def _gauges(name: str, help_text: str, label: str, values: Sequence[str], found: dict[str, int]) -> Iterator[str]:
    yield from _described(name, "gauge", help_text)
    yield from (f'{name}{{{label}="{_escaped(each)}"}} {found.get(each, 0)}' for each in values)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class MetricsServer:
    """Answers GET /metrics, and /healthz for who restarts what is stuck; few callers at once, none of them for long."""

    def __init__(self, address: str, text: Callable[[], str], is_well: Callable[[], bool]) -> None:
        """`address` is a port of this machine alone, or HOST:PORT."""
        host, _, port = address.rpartition(":")
        try:
            self._server = _Server((host.strip("[]") or "127.0.0.1", int(port)), _handler(text, is_well))
        except (OSError, ValueError, OverflowError) as error:
            raise ConfigurationError(
                f"Metrics cannot be served at {address!r}: {error}. Name a free port, or HOST:PORT."
            ) from error
        threading.Thread(target=self._server.serve_forever, name="skillkit-metrics", daemon=True).start()

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 - the server's own
        super().__init__(*given)
        self._places = threading.BoundedSemaphore(MOST_CALLERS)

    def process_request(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:  # noqa: ANN401
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:  # noqa: ANN401
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


def _handler(text: Callable[[], str], is_well: Callable[[], bool]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = CALLER_SECONDS
        server_version, sys_version = "skillkit", ""

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._say(200, text())
            elif self.path == "/healthz":
                self._say(*((200, "ok\n") if is_well() else (503, "this worker does not look after its runs\n")))
            else:
                self._say(404, "Look at /metrics or /healthz.\n")

        def _say(self, status: int, said: str) -> None:
            content = said.encode()
            self.send_response(status)
            self.send_header("Content-Type", METRICS_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Who looks is of no interest."""

    return Handler
