"""The examples for many machines: an own Celery app as its users run it, and a manifest that Kubernetes would take."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from support.brokers import redis
from support.databases import Database
from support.fleets import tier_here
from support.running import wait_for

from skillkit.cli.worker import worker_command
from skillkit.config import load_settings
from skillkit.core.record import AuditLog
from skillkit.core.store.opening import open_store

EXAMPLES = Path(__file__).parents[2] / "examples"
VERSIONS = ("1.29", "1.33", "1.37")


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_an_own_app_runs_its_tasks_and_skills(databases: Database, tmp_path: Path, pool: str) -> None:
    pytest.importorskip("celery")
    world = databases.new_world()
    login = databases.new_login(world, "worker", "front")
    with redis() as broker:
        environment = {
            **os.environ,
            "SKILLKIT_STATE": databases.address(world, login=login),
            "SKILLKIT_STATE_DIR": str(tmp_path / "state"),
            "SKILLKIT_BROKER": broker.url,
        }
        log = tmp_path / "log"
        words = ["celery", "-A", "celery_app", "worker", "--pool", pool, "--concurrency", "2", "--loglevel", "INFO"]
        with (
            log.open("wb") as output,
            subprocess.Popen(
                [sys.executable, "-m", *words, "-Q", f"celery,{world}.python3.{tier_here()}"],
                env=environment,
                cwd=EXAMPLES,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            ) as worker,
        ):
            try:
                assert wait_for(lambda: b"ready." in log.read_bytes(), 60), log.read_text()
                ended = subprocess.run(
                    [sys.executable, "celery_app.py", "The cat sat."],
                    env=environment,
                    cwd=EXAMPLES,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=100,
                )
                assert ended.returncode == 0, ended.stderr + log.read_text()
                assert re.search(r"words +3\b", ended.stdout), ended.stdout
                assert wait_for(lambda: b"ordered " in log.read_bytes(), 60), log.read_text()
                assert wait_for(lambda: states(databases, world) == [("finished", 2)], 60), log.read_text()
            finally:
                worker.terminate()
                worker.wait(60)
    store = open_store(tmp_path / "verifier", databases.address(world, login=login))
    assert AuditLog(store).verify().count == 4
    store.close()
    databases.drop_world(world)


def states(databases: Database, world: str) -> list[tuple[str, int]]:
    with databases.connect(world) as connection:
        return list(connection.execute("select state, count(*) from runs group by state").fetchall())


@pytest.fixture(scope="module")
def manifest() -> list[dict[str, object]]:
    return list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifest_is_what_kubernetes_takes(manifest: list[dict[str, object]], version: str) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    assert [each["kind"] for each in manifest] == ["ConfigMap", "Deployment", "PodDisruptionBudget", "NetworkPolicy"]
    for each in manifest:
        validator.validate(each, version, strict=True)
    wrong = copy.deepcopy(manifest[1])
    wrong["spec"]["template"]["spec"]["containers"][0]["imagePolicy"] = "x"  # type: ignore[index]
    with pytest.raises(validator.ValidationError, match="imagePolicy"):
        validator.validate(wrong, version, strict=True)


def test_the_manifest_calls_a_command_that_is_there_with_settings_that_are_read(
    manifest: list[dict[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (EXAMPLES / "kubernetes.yaml").read_text()
    (words,) = re.findall(r"args: \[(.*)\]", text)
    given = [each.strip().strip('"') for each in words.split(",")]
    assert given[:2] == ["skillkit", "worker"]
    context = worker_command.make_context("worker", given[2:], resilient_parsing=False)
    assert (context.params["concurrency"], context.params["metrics_port"]) == (4, "0.0.0.0:9464")
    assert isinstance(context, click.Context)
    settings = manifest[0]["data"]
    assert isinstance(settings, dict)
    # As a config map is mounted: a link to a link to what is there now.
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data/skillkit.toml").write_text(settings["skillkit.toml"])
    (tmp_path / "skillkit.toml").symlink_to("..data/skillkit.toml")
    monkeypatch.setenv("SKILLKIT_CONFIG", str(tmp_path / "skillkit.toml"))
    assert load_settings(None).policy.sandbox == "required"
