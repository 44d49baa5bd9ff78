"""Several calls that ask at one time, and what becomes of those who wait."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.approving import Gate, asking_manager, change, run, skill
from support.asking import askers_of, only_pending
from support.commands import BOUNDS
from support.running import kinds, records_of, wait_for

from skillkit import (
    TRUSTED,
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    OptionAnswer,
    OptionRequest,
    ScriptExecutionResult,
    SkillManager,
    World,
)
from skillkit.approvers.callback import CallbackApprover
from skillkit.approvers.store import StoreApprover
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.questions import Prompt
from skillkit.core.values.runs import RunControl
from skillkit.testing import ScriptedApprover


@contextmanager
def twenty_equal_calls(manager: SkillManager) -> Any:
    """Twenty threads that ask the same thing, each known to wait."""
    with ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(run, manager, "same") for _ in range(20)]
        assert wait_for(lambda: len(manager.flow.approvals._coverable) == 20, 30)
        time.sleep(1)  # from there it is a step to the question they share
        yield calls


def outcomes_of(calls: list[Future[ScriptExecutionResult]]) -> Counter[str]:
    def outcome(call: Future[ScriptExecutionResult]) -> str:
        error = call.exception(60)
        return type(error).__name__ if error else call.result().stdout

    return Counter(map(outcome, calls))


def test_twenty_equal_calls_put_one_question_and_a_no_declines_them_all(tmp_path: Path) -> None:
    gate = Gate()
    with asking_manager(tmp_path, gate) as manager, twenty_equal_calls(manager) as calls:
        gate.say("no")
        assert outcomes_of(calls) == {"ApprovalDeclinedError": 20}
    assert len(gate.requests) == 1
    assert Counter(kinds(tmp_path)) == {"refused": 20}


def test_twenty_equal_calls_put_one_question_and_a_yes_for_the_session_runs_them_all(tmp_path: Path) -> None:
    gate = Gate()
    with asking_manager(tmp_path, gate) as manager, twenty_equal_calls(manager) as calls:
        gate.say("yes_in_session")
        assert outcomes_of(calls) == {"ran same\n": 20}
    assert len(gate.requests) == 1


def test_of_twenty_equal_calls_a_yes_once_runs_one_and_the_others_ask_again(tmp_path: Path) -> None:
    gate = Gate()
    with asking_manager(tmp_path, gate) as manager, twenty_equal_calls(manager) as calls:
        gate.say("yes_once")
        assert wait_for(lambda: len(gate.requests) == 2, 30)
        assert wait_for(lambda: kinds(tmp_path) == ["started", "finished"], 30)
        gate.say("yes_once")
        assert wait_for(lambda: len(gate.requests) == 3, 30)
        time.sleep(1)  # for the others to join; who comes later asks again, and is declined by a further word
        gate.say(*["no"] * 18)
        assert outcomes_of(calls) == {"ran same\n": 2, "ApprovalDeclinedError": 18}
    assert len(gate.requests) < 20


def test_where_every_run_is_asked_about_equal_calls_do_not_share_a_yes(tmp_path: Path) -> None:
    gate = Gate()
    policy = replace(TRUSTED, approval="always")
    with asking_manager(tmp_path, gate, policy=policy) as manager, ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(run, manager, "same") for _ in range(2)]
        gate.say("yes_in_session")
        assert wait_for(lambda: len(gate.requests) == 2, 30)
        gate.say("no")
        assert outcomes_of(calls) == {"ran same\n": 1, "ApprovalDeclinedError": 1}


def test_where_every_run_is_asked_about_equal_calls_of_two_programs_do_not_share_a_yes(tmp_path: Path) -> None:
    always = replace(TRUSTED, approval="always")
    with (
        World(tmp_path / "state") as world,
        World(tmp_path / "state") as other,
        asking_manager(tmp_path, StoreApprover(world), policy=always) as here,
        asking_manager(tmp_path, StoreApprover(other), policy=always) as there,
        ThreadPoolExecutor(2) as pool,
    ):
        calls = [pool.submit(run, manager, "same") for manager in (here, there)]
        assert wait_for(lambda: askers_of(world) == 2, 30)
        world.answer(only_pending(world).id, "yes_in_session", "web")
        assert wait_for(lambda: askers_of(world) == 1 and any(call.done() for call in calls), 30)
        world.answer(only_pending(world).id, "no", "web")
        assert outcomes_of(calls) == {"ran same\n": 1, "ApprovalDeclinedError": 1}


def test_where_every_run_is_asked_about_a_no_is_still_for_all_equal_calls(tmp_path: Path) -> None:
    gate = Gate()
    policy = replace(TRUSTED, approval="always")
    with asking_manager(tmp_path, gate, policy=policy) as manager, ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(run, manager, "same") for _ in range(2)]
        assert wait_for(lambda: len(gate.requests) == 1, 30)
        time.sleep(1)  # for the other one to join; should it come later, it is declined by the second word
        gate.say("no", "no")
        assert outcomes_of(calls) == {"ApprovalDeclinedError": 2}
    assert len(gate.requests) == 1


def test_a_yes_for_the_session_ends_the_other_open_questions_about_the_skill(tmp_path: Path) -> None:
    gate = Gate()
    with asking_manager(tmp_path, gate) as manager, ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(run, manager, word) for word in ("a", "b", "c")]
        assert wait_for(lambda: len(gate.requests) == 3, 30)
        gate.say("yes_in_session")
        assert outcomes_of(calls) == {"ran a\n": 1, "ran b\n": 1, "ran c\n": 1}
    assert len(gate.requests) == 3
    answers = [record.fields["answer"] for record in records_of(tmp_path) if record.kind == "started"]
    assert Counter(answers) == {"yes_in_session": 1, None: 2}


def test_a_yes_for_the_session_leaves_the_questions_of_other_sessions_alone(tmp_path: Path) -> None:
    gate = Gate()
    with asking_manager(tmp_path, gate) as manager, ThreadPoolExecutor(2) as pool:
        mine = pool.submit(run, manager, "mine")
        assert wait_for(lambda: len(gate.requests) == 1, 30)
        cancel = threading.Event()
        theirs = pool.submit(run, manager, "theirs", session_id="t", cancel=cancel)
        assert wait_for(lambda: len(gate.requests) == 2, 30)
        with asking_manager(tmp_path, ScriptedApprover("yes_in_session")) as other:
            run(other)
        assert mine.result(30).stdout == "ran mine\n"
        prepared = manager.prepare_skill_script("demo", "run")
        manager.flow.approvals.keep(prepared, OptionAnswer("yes_in_session", "x", time.time(), "any"))
        time.sleep(0.3)
        assert len(gate.requests) == 2, "their question was not put again"
        cancel.set()
        assert isinstance(theirs.exception(30), ApprovalUnavailableError)


def test_a_no_to_a_question_counts_although_the_session_was_approved_meanwhile(tmp_path: Path) -> None:
    both_asked, agreed = threading.Barrier(2), threading.Event()

    def answer(request: OptionRequest) -> str:
        prompt = Prompt.from_context(request.context)
        assert prompt is not None
        both_asked.wait(30)
        if prompt.commands[0].argv == ("wanted",):
            return "yes_in_session"
        assert agreed.wait(30)
        return "no"

    with asking_manager(tmp_path, CallbackApprover(answer)) as manager, ThreadPoolExecutor(2) as pool:
        wanted, unwanted = (pool.submit(run, manager, word) for word in ("wanted", "unwanted"))
        assert wanted.result(30).stdout == "ran wanted\n"
        agreed.set()
        assert isinstance(unwanted.exception(30), ApprovalDeclinedError)


def test_a_skill_that_changed_meanwhile_is_asked_about_again_and_not_covered(tmp_path: Path) -> None:
    """The word that ends an open question was about other content by the time it is used."""
    gate = Gate()
    with asking_manager(tmp_path, gate) as manager, ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, manager, "a")
        assert wait_for(lambda: len(gate.requests) == 1, 30)
        prepared = manager.prepare_skill_script("demo", "run", argv=["b"])
        change(skill(tmp_path))
        command = prepared.command
        StandingApprovals(manager.flow.store).approve_in_session(
            "s", skill="demo", folder=command.base_directory, digest=command.digest, channel="x", walls=BOUNDS
        )
        manager.flow.approvals.keep(prepared, OptionAnswer("yes_in_session", "x", time.time(), "any"))
        assert wait_for(lambda: len(gate.requests) == 2, 30)
        gate.say("no")
        assert isinstance(first.exception(30), ApprovalDeclinedError)


# Waiting.


def test_an_async_call_asks_without_blocking_the_loop(tmp_path: Path) -> None:
    gate = Gate()

    async def scenario() -> str:
        with asking_manager(tmp_path, gate) as manager:
            call = asyncio.ensure_future(manager.aexecute_skill_script("demo", "run"))
            await asyncio.to_thread(wait_for, lambda: gate.requests, 30)
            gate.say("yes_once")
            return (await call).stdout

    assert asyncio.run(scenario()) == "ran\n"


def test_a_cancelled_async_call_withdraws_its_question_and_runs_nothing(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with asking_manager(tmp_path, StoreApprover(world)) as manager:
            call = asyncio.ensure_future(manager.aexecute_skill_script("demo", "run"))
            await asyncio.to_thread(wait_for, world.pending, 30)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert world.pending() == []

    with World(tmp_path / "state") as world:
        asyncio.run(scenario(world))
    assert kinds(tmp_path) == ["refused"]


def test_setting_cancel_withdraws_the_question(tmp_path: Path) -> None:
    cancel = threading.Event()
    with World(tmp_path / "state") as world, asking_manager(tmp_path, StoreApprover(world)) as manager:
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(run, manager, cancel=cancel)
            assert wait_for(world.pending, 30)
            cancel.set()
            assert isinstance(call.exception(30), ApprovalUnavailableError)
        assert [past.outcome for past in world.history()] == ["withdrawn"]


def test_a_cancelled_call_does_not_take_equal_calls_along(tmp_path: Path) -> None:
    gate, cancel = Gate(), threading.Event()
    with asking_manager(tmp_path, gate) as manager, ThreadPoolExecutor(2) as pool:
        cancelled = pool.submit(run, manager, "same", cancel=cancel)
        assert wait_for(lambda: len(gate.requests) == 1, 30)
        other = pool.submit(run, manager, "same")
        assert wait_for(lambda: len(manager.flow.approvals._coverable) == 2, 30)
        cancel.set()
        assert isinstance(cancelled.exception(30), ApprovalUnavailableError)
        gate.say("yes_once")
        assert other.result(30).stdout == "ran same\n"


def test_waiting_for_a_person_does_not_count_as_running(tmp_path: Path) -> None:
    def slowly(_: OptionRequest) -> str:
        time.sleep(1.2)
        return "yes_once"

    with asking_manager(tmp_path, CallbackApprover(slowly)) as manager:
        result = run(manager, timeout=1)
    assert (result.stdout, result.timed_out) == ("ran\n", False)


@pytest.mark.skipif(not hasattr(os, "dup2"), reason="needs descriptors")
def test_a_descriptor_with_a_high_number_cancels_too() -> None:
    import resource

    reading, writing = os.pipe()
    high = min(2000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1)
    os.dup2(reading, high)
    try:
        cancellation = RunControl(wakeup_fd=high)
        assert not cancellation.is_set()
        os.write(writing, b"x")
        assert cancellation.is_set()
    finally:
        for descriptor in (reading, writing, high):
            os.close(descriptor)


class Leaves(Exception):  # noqa: N818 - a framework's way to leave and come back
    pass


def test_a_frameworks_way_to_leave_passes_through_and_is_no_refusal(tmp_path: Path) -> None:
    def leave(_: OptionRequest) -> str:
        raise Leaves

    with asking_manager(tmp_path, CallbackApprover(leave, control_flow=(Leaves,))) as manager:
        with pytest.raises(Leaves):
            run(manager)
        assert kinds(tmp_path) == []
        manager.flow.approver = ScriptedApprover("yes_once")
        assert run(manager).stdout == "ran\n", "nothing is stuck"


def test_a_yes_for_the_session_in_another_process_ends_an_open_question_here(tmp_path: Path) -> None:
    """Two managers share nothing but the world's file, as two processes do."""
    here, there = Gate(), ScriptedApprover("yes_in_session")
    with asking_manager(tmp_path, here) as waiting, asking_manager(tmp_path, there) as other:
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(run, waiting, "here")
            assert wait_for(lambda: here.requests, 30)
            run(other, "there")
            assert call.result(30).stdout == "ran here\n"
        assert len(here.requests) == 1
    with asking_manager(tmp_path, Gate(), session_id="t") as stranger, ThreadPoolExecutor(1) as pool:
        cancel = threading.Event()
        call = pool.submit(run, stranger, cancel=cancel)
        time.sleep(1)
        assert not call.done(), "another session is not answered by it"
        cancel.set()
        assert isinstance(call.exception(30), ApprovalUnavailableError)
