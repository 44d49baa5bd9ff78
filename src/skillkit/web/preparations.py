"""A skill's name -> its packages, prepared by a thread of the page while the page shows how far it is.

What a person is asked waits in the world's store, as every question does, and is answered there.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from skillkit.approvers.store import StoreApprover
from skillkit.config import load_settings
from skillkit.core.exceptions import ConfigurationError, SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.store.world import World
from skillkit.core.values.questions import OptionRequest
from skillkit.packages import require_packages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.packages.prepare import Preparation

__all__ = ["Job", "Preparations"]

AT_ONCE = 4
ANSWER_SECONDS = 1800.0
LAST_SECONDS = 5.0


@dataclass(slots=True)
class Job:
    """One preparation: what it does now, and what came of it."""

    skill: str
    what: str = "beginning"
    there: int = 0
    whole: int = 0
    request_id: str = ""
    """Of the question that it asked; it waits for the answer as long as that is open."""
    done: Preparation | None = None
    error: str = ""
    over: threading.Event = field(default_factory=threading.Event)
    news: threading.Event = field(default_factory=threading.Event)
    """Set once it asks or is over."""
    cancel: threading.Event = field(default_factory=threading.Event)

    def show(self, what: str, there: int, whole: int) -> None:
        self.what, self.there, self.whole = what, there, whole

    def ask(self, request: OptionRequest) -> None:
        self.what, self.request_id = "waiting for your answer", request.id
        self.news.set()

    @property
    def percent(self) -> int | None:
        return min(100, round(100 * self.there / self.whole)) if self.whole else None


class Preparations:
    """Of one page: for each skill one at a time, and few at once."""

    def __init__(self, world: World, manager: SkillManager | None) -> None:
        self._world = world
        self._manager = manager
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._threads: list[threading.Thread] = []

    def find(self, skill: str) -> Job | None:
        """The last one of this skill."""
        with self._lock:
            return self._jobs.get(skill)

    def asking(self, request_id: str) -> Job | None:
        """The one that asked this."""
        with self._lock:
            return next((job for job in self._jobs.values() if job.request_id == request_id), None)

    def start(self, skill: str) -> Job:
        """A new one; the one that goes on, where there is one."""
        if self._manager is None:
            raise ConfigurationError("This page was started without skills to look at.")
        require_packages()
        with self._lock:
            job = self._jobs.get(skill)
            if job is not None and not job.over.is_set():
                return job
            if sum(not each.over.is_set() for each in self._jobs.values()) >= AT_ONCE:
                raise ConfigurationError(f"{AT_ONCE} preparations go on already. Wait until one of them is over.")
            job = self._jobs[skill] = Job(skill)
            thread = threading.Thread(target=self._prepare, args=(self._manager, job), daemon=True)
            self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        thread.start()
        return job

    def _prepare(self, manager: SkillManager, job: Job) -> None:
        from skillkit.packages.prepare import prepare_packages

        try:
            job.done = prepare_packages(
                manager,
                job.skill,
                approver=StoreApprover(self._world, ANSWER_SECONDS, announce=job.ask),
                min_age_days=load_settings(Path.cwd()).packages_min_age_days,
                on_step=job.show,
                cancel=job.cancel,
            )
        except (SkillKitError, OSError) as error:
            job.error = str(error)
        except BaseException as error:
            job.error = f"skillkit itself failed: {type(error).__name__}. The log says more."
            raise
        finally:
            job.over.set()
            job.news.set()

    def close(self) -> None:
        """Stops what goes on, and waits a moment until its tools are gone."""
        with self._lock:
            jobs, threads = list(self._jobs.values()), list(self._threads)
        for job in jobs:
            job.cancel.set()
        for thread in threads:
            thread.join(LAST_SECONDS)
