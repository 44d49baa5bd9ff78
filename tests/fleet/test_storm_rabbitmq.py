"""A storm of runs through RabbitMQ: workers, broker and database are killed meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fleet_storms import SECONDS, endure_a_storm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS)]


def test_every_run_starts_at_most_once_and_ends_exactly_once(tmp_path: Path) -> None:
    endure_a_storm("rabbitmq", 100, tmp_path)
