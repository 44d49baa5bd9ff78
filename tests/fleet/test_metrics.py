"""What a worker tells who watches: as Prometheus reads it, with labels that nobody can make up, and in spans."""

from __future__ import annotations

import re
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families
from support.fleets import Fleet
from support.running import wait_for

from skillkit import ConfigurationError, SkillManager
from skillkit.fleet import Worker, tracing
from skillkit.fleet.work.metrics import MOST_CALLERS, MetricsServer, Performed, metrics_text

pytestmark = pytest.mark.slow


def numbers(text: str) -> dict[str, float]:
    """Every sample by its name and labels; Prometheus's own reader complains of anything else."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def got(address: str) -> str:
    with urlopen(address, timeout=30) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(response.read().decode())


def ordered(manager: SkillManager, script: str = "say") -> str:
    """Ordered, and not waited for."""
    return str(manager.flow.runner.order(manager, "demo", script).id)  # type: ignore[attr-defined]


@pytest.fixture
def here(quiet: Fleet) -> Worker:
    return quiet.worker_here()


def text_of(fleet: Fleet, worker: Worker) -> str:
    return metrics_text(worker, [fleet.queue("python3"), fleet.queue("bash")])


def test_the_command_serves_them_while_runs_go_on(fleet: Fleet) -> None:
    worker = fleet.start_worker("--policy", "standard", "--metrics-port", "0", "--label", "gpu")
    told = re.search(r"metrics at (http://127\.0\.0\.1:\d+/metrics)", worker.log.read_text())
    assert told is not None
    before = numbers(got(told[1]))
    assert before["skillkit_store_up"] == 1
    assert before["skillkit_workers"] >= 1
    assert f"skillkit_queue_length{{queue={fleet.queue('python3', 'gpu')}}}" in before
    assert fleet.manager(sending={"label": "gpu"}).execute_skill_script("demo", "say").success
    # Who waits for a run hears of its end a moment before the worker has counted it.
    assert wait_for(lambda: numbers(got(told[1]))["skillkit_worker_runs_total{outcome=finished}"] == 1, 30)
    after = numbers(got(told[1]))
    assert after["skillkit_worker_run_seconds_count"] == 1
    assert after["skillkit_worker_run_seconds_sum"] > 0
    assert after["skillkit_runs_ended_recently{state=finished}"] >= 1
    with urlopen(told[1].replace("/metrics", "/healthz"), timeout=30) as response:
        assert response.status == 200
    with pytest.raises(HTTPError, match="404") as refused:
        urlopen(told[1].replace("/metrics", "/anything"), timeout=30)
    refused.value.close()
    assert worker.terminate() == 0
    with pytest.raises(OSError, match="refused"):
        urlopen(told[1], timeout=30)


def test_what_waits_runs_and_ended_is_counted(quiet: Fleet, here: Worker) -> None:
    manager = quiet.manager()
    runs = [ordered(manager, script) for script in ("say", "say", "fail")]
    before = numbers(text_of(quiet, here))
    assert before["skillkit_runs{state=queued}"] == 3
    assert before[f"skillkit_queue_length{{queue={quiet.queue('python3')}}}"] == 2
    assert before[f"skillkit_queue_length{{queue={quiet.queue('bash')}}}"] == 1
    assert before["skillkit_queue_oldest_seconds"] > 0
    for run in runs:
        here.run(run)
    here.run(runs[0])
    after = numbers(text_of(quiet, here))
    assert after["skillkit_runs{state=queued}"] == after["skillkit_queue_oldest_seconds"] == 0
    assert after["skillkit_worker_runs_total{outcome=finished}"] == 3, "a second message counts for nothing"
    assert after["skillkit_runs_ended_recently{state=finished}"] == 3
    assert after["skillkit_worker_run_seconds_bucket{le=+Inf}"] == 3


def test_renewals_running_ones_and_the_spool_are_told(
    quiet: Fleet, here: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillkit.fleet.work.keeping.RENEW_SECONDS", 0.3)
    here.start()
    run = ordered(quiet.manager(), "nap")
    thread = threading.Thread(target=here.run, args=(run,))
    thread.start()
    assert wait_for(lambda: numbers(text_of(quiet, here))["skillkit_worker_running"] == 1, 30)
    assert wait_for(lambda: numbers(text_of(quiet, here))["skillkit_worker_lease_renewals_total"] >= 1, 30)
    thread.join(60)
    assert numbers(text_of(quiet, here))["skillkit_worker_running"] == 0
    here.spool.keep("5f3c8e1e-0000-4000-8000-000000000000", here.name, "finished", {}, "")
    assert "skillkit_worker_spooled 1\n" in text_of(quiet, here)


def test_no_label_can_be_made_up(quiet: Fleet, here: Worker) -> None:
    manager = quiet.manager()
    here.run(ordered(manager))
    before = set(numbers(text_of(quiet, here)))
    for label in ("a", "b", 'x"y'):
        ordered(quiet.manager(sending={"label": label}))
    found = numbers(text_of(quiet, here))
    assert set(found) == before
    assert found["skillkit_queue_length{queue=other}"] == 3
    assert not re.search(r"demo|say|front_|login_", text_of(quiet, here)), "no skill, no script, no login"


def test_a_world_that_is_away_is_told_and_the_rest_still_counts(quiet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = quiet.worker_here()
    with monkeypatch.context() as patch:
        patch.setattr(worker.rows.store, "connection", quiet.worker_here(login="nobody-there").rows.store.connection)
        found = numbers(text_of(quiet, worker))
    assert found["skillkit_store_up"] == 0
    assert "skillkit_workers" not in found
    assert found["skillkit_worker_running"] == 0
    assert numbers(text_of(quiet, worker))["skillkit_store_up"] == 1


def test_a_fault_is_an_outcome_of_its_own() -> None:
    performed = Performed()
    with pytest.raises(KeyError), performed.run():
        raise KeyError
    with performed.run() as say:
        assert say("something new") == "something new"
    assert 'skillkit_worker_runs_total{outcome="fault"} 2' in [*performed.lines()]


def test_idle_callers_keep_nobody_from_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillkit.fleet.work.metrics.CALLER_SECONDS", 1.0)
    server = MetricsServer("0", lambda: "up 1\n", lambda: False)
    host, port = server.address.removeprefix("http://").removesuffix("/metrics").split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(MOST_CALLERS + 4)]
    try:
        assert wait_for(lambda: is_served(server.address), 30)
        with pytest.raises(HTTPError, match="503") as refused:
            urlopen(server.address.replace("/metrics", "/healthz"), timeout=30)
        refused.value.close()
    finally:
        for each in idle:
            each.close()
        server.close()


def is_served(address: str) -> bool:
    try:
        return got(address) == "up 1\n"
    except OSError:
        return False


@pytest.mark.parametrize("address", ["", "many", "70000", "-1", "203.0.113.7:9000"])
def test_an_address_that_cannot_be_served_is_named(address: str) -> None:
    with pytest.raises(ConfigurationError, match=f"Metrics cannot be served at '{address}'"):
        MetricsServer(address, str, bool)


# Spans.


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    tracing._tracer.cache_clear()
    yield exporter
    tracing._tracer.cache_clear()


def test_order_and_run_have_a_span_each_with_the_runs_id(
    quiet: Fleet, here: Worker, spans: InMemorySpanExporter
) -> None:
    run = ordered(quiet.manager())
    here.run(run)
    told: dict[str, Any] = {each.name: dict(each.attributes or {}) for each in spans.get_finished_spans()}
    assert told["skillkit.order"] == {
        "skillkit.run": run,
        "skillkit.skill": "demo",
        "skillkit.script": "scripts/say.py",
    }
    assert told["skillkit.run"] == {"skillkit.run": run, "skillkit.worker": here.name, "skillkit.outcome": "finished"}


def test_without_the_library_a_span_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    tracing._tracer.cache_clear()
    with tracing.span("skillkit.run", run="x") as note:
        note("outcome", "finished")
    tracing._tracer.cache_clear()
