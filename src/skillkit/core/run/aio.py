"""A blocking run -> something a loop can await, cancelled by killing the script's tree."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from skillkit.core.values.runs import RunControl

__all__ = ["run_in_thread"]

Result = TypeVar("Result")


def _carried(error: BaseException) -> BaseException:
    """No future can carry a StopIteration."""
    return RuntimeError(f"on_output raised {error!r}") if isinstance(error, StopIteration) else error


async def run_in_thread(run: Callable[[RunControl], Result]) -> Result:
    """Calls `run` in a thread of its own with a control by which it is stopped when the call is cancelled.

    A thread for each run instead of a pool: hundreds may wait at once, and none holds up another.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()
    stop_reading, stop_writing = os.pipe()
    context = contextvars.copy_context()

    def let_go() -> None:
        os.close(stop_reading)
        os.close(stop_writing)

    def settle(result: Result | None, error: BaseException | None) -> None:
        # Only now: whoever awaits may be cancelled twice, and the run must not watch a number that was given away.
        let_go()
        if error is not None:
            done.set_exception(error)
            done.exception()  # a cancelled call has nobody left to look at it
        else:
            done.set_result(result)  # type: ignore[arg-type]  # a result without an error is a Result

    def work() -> None:
        result, problem = None, None
        try:
            result = context.run(run, RunControl(wakeup_fd=stop_reading))
        except BaseException as error:  # noqa: BLE001 - handed to whoever awaits
            problem = _carried(error)
        try:
            loop.call_soon_threadsafe(settle, result, problem)
        except RuntimeError:  # the loop is closed, and nobody awaits
            let_go()

    try:
        threading.Thread(target=work, name="skillkit-run", daemon=True).start()
    except RuntimeError:
        let_go()
        raise
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if not done.done():
            os.write(stop_writing, b"x")
            await asyncio.wait([done])  # nothing of the script is left when the cancelled call ends
        raise
