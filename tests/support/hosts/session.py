"""One sitting with a host, from adding skillkit to quitting -> what was seen at each stage, for tests to judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from support.hosts.host import Host
from support.hosts.model import MISSING, ScriptedModel
from support.hosts.pages import add_as_the_page_says
from support.hosts.screen import HostScreen
from support.hosts.world import SCRIPT_WORD, SKILL, HostWorld, wait_until

__all__ = ["Sitting", "sit_down"]

PATIENCE_SECONDS = 90
SERVER_SECONDS = 10
GONE_SECONDS = 30


@dataclass
class Sitting:
    """What was seen; a stage that failed kept its error, and is judged by it."""

    host: Host
    tools: dict[str, str] = field(default_factory=dict)
    results: dict[str, list[str]] = field(default_factory=dict)
    forms: list[list[str]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    ran: dict[str, dict[int, str]] = field(default_factory=dict)
    """The processes of a script while it ran, by stage."""
    left: dict[str, dict[int, str]] = field(default_factory=dict)
    """What of it was still there afterwards."""
    refused: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)

    def require(self, *stages: str) -> None:
        for stage in stages:
            if stage in self.failed:
                raise self.failed[stage]


def sit_down(host: Host, world: HostWorld, model: ScriptedModel) -> Sitting:
    sitting = Sitting(host)
    environment = world.environment(model, host.environment(world, model))
    host.settle(world, model)
    with _stage(sitting, "add"):
        add_as_the_page_says(host.name, world, environment)
    if sitting.failed:
        return sitting
    with HostScreen(
        [word.format(home=world.home) for word in host.argv], environment, world.project, world.transcript
    ) as screen:
        person = _Person(host, world, model, screen, environment, sitting)
        for name, stage in person.stages().items():
            with _stage(sitting, name):
                sitting.require("start", "greet")
                stage()
    with _stage(sitting, "left"):
        # A host that leaves a daemon behind leaves our server with it; once that is gone too, nothing may be left.
        world.end(world.host_processes())
        wait_until(lambda: not world.own_processes(), "our processes are gone", GONE_SECONDS)
    sitting.left["quit"] = world.own_processes()
    sitting.tools = model.tools()
    sitting.results = {plan: model.results(plan) for plan in model.plans}
    sitting.records = world.records()
    sitting.refused = list(model.refused)
    return sitting


@contextmanager
def _stage(sitting: Sitting, name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it was, the test of this stage tells it
        sitting.failed[name] = error


@dataclass
class _Person:
    """Who sits before the host: types, looks, answers what is asked."""

    host: Host
    world: HostWorld
    model: ScriptedModel
    screen: HostScreen
    environment: Mapping[str, str]
    sitting: Sitting

    def stages(self) -> dict[str, Callable[[], None]]:
        return {"start": self.start, "greet": self.greet, "timeout": self.time_out, "cancel": self.cancel}

    def start(self) -> None:
        self.attend(lambda: self.screen.has(self.host.ready), "it takes words")
        self.screen.wait_for(self.host.ready)
        # Some keep for a whole conversation the tools that they knew when it began.
        until = time.monotonic() + SERVER_SECONDS
        while not self.world.own_processes() and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2)
        self.screen.capture("ready")

    def greet(self) -> None:
        """Loads the skill and runs a script; the person says yes once, in the form or at a terminal of their own."""
        for times in range(1, 5):
            self.say("greet")
            self.attend(partial(self.is_greeted_or_lost, times), "the script ran", answer=True)
            if self.is_greeted():
                return
            time.sleep(3)  # it took words before it knew its servers
        raise AssertionError(f"it never knew our tools\n{self.screen.text}")

    def is_greeted_or_lost(self, times: int) -> bool:
        return self.is_greeted() or self.screen.text.count(MISSING) >= times

    def is_greeted(self) -> bool:
        return self.model.is_over("greet")

    def time_out(self) -> None:
        self.world.skillkit(self.environment, "trust", "add", SKILL, "--yes")
        self.say("timeout")
        self.watch("timeout")
        self.attend(lambda: self.model.is_over("timeout"), "the model is told of the end")
        self.sitting.left["timeout"] = self.world.processes(SCRIPT_WORD)

    def cancel(self) -> None:
        self.say("cancel")
        self.watch("cancel")
        if self.host.cancels_by_quitting:
            self.screen.end()
        else:
            first, *more = self.host.cancel
            self.screen.press(first, "cancel")
            for key in more:
                time.sleep(0.2)  # pressed twice, not once and later once more
                self.screen.send(key)
        # Sooner than the timeout would end it: the record tells the two apart.
        wait_until(lambda: not self.world.processes(SCRIPT_WORD), "the cancelled script is gone", every=0.05)
        self.sitting.left["cancel"] = self.world.processes(SCRIPT_WORD)
        self.screen.capture("after cancelling")

    def watch(self, stage: str) -> None:
        """Until the script and what it started are there."""
        self.attend(lambda: len(self.world.processes(SCRIPT_WORD)) > 0, "the slow script runs")
        time.sleep(1)
        self.sitting.ran[stage] = self.world.processes(SCRIPT_WORD)
        self.screen.capture("while a script runs")

    def say(self, plan: str) -> None:
        self.attend(lambda: self.screen.has(self.host.ready), "it takes words")
        self.screen.wait_for(self.host.ready)
        self.screen.type(f"Follow plan-{plan}.")

    def attend(self, is_done: Callable[[], bool], what: str, *, answer: bool = False) -> None:
        """Until it is so; meanwhile the host's own questions get a yes, and ours too where `answer` says so."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self.says_yes_to_the_host() or not is_done():
            if time.monotonic() > until:
                self.screen.capture(f"never: {what}")
                raise AssertionError(f"never: {what}\n{self.screen.text}")
            if answer and self.host.form:
                self.fill_in_form()
            elif answer:
                answer = not self.world.answer_what_waits(self.environment, "yes_once")
            time.sleep(0.1)

    def says_yes_to_the_host(self) -> bool:
        keys = next((keys for shown, keys in self.host.gates.items() if self.screen.has(shown)), None)
        if keys is not None:
            self.screen.capture("a question of the host's own")
            self.screen.press(keys, "the host's own question")
            time.sleep(1)
        return keys is not None

    def fill_in_form(self) -> None:
        if not self.screen.has(self.host.form):
            return
        self.screen.wait_for(self.host.form)
        self.sitting.forms.append(self.screen.capture("our form"))
        assert self.host.say_yes_once is not None
        self.host.say_yes_once(self.screen)
        time.sleep(1)
