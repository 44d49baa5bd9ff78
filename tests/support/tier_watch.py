"""Says when every test of a kind of walls was skipped although this machine has that kind; in CI the session fails."""

from __future__ import annotations

import os
from collections import Counter

import pytest

TIERS = ("bubblewrap", "landlock")
ran: Counter[str] = Counter()
skipped: Counter[str] = Counter()


def tier_of(test: str) -> str:
    """By its name: a file or a parameter says which walls a test is about."""
    return next((tier for tier in TIERS if tier in test), "")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if tier := tier_of(report.nodeid):
        skipped[tier] += report.skipped
        ran[tier] += report.when == "call" and not report.skipped


def unwatched() -> list[str]:
    """The kinds that work here and of which nothing was tested although it was asked for."""
    silent = [tier for tier in TIERS if skipped[tier] and not ran[tier]]
    if not silent:
        return []
    from skillkit.core.run.tiers import machine_tiers

    return [each.tier for each in machine_tiers() if each.sandbox is not None and each.tier in silent]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    is_asked = bool(os.environ.get("CI")) and not hasattr(session.config, "workerinput")
    if is_asked and session.exitstatus == pytest.ExitCode.OK and unwatched():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for tier in unwatched():
        terminalreporter.write_line(f"This machine has {tier}, and every test of it was skipped.", red=True)
