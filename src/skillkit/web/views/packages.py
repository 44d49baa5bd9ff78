"""A skill -> the page where its packages are prepared: a button that begins it, how far it is, and what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from skillkit.core.exceptions import SkillKitError
from skillkit.core.paths import real_path
from skillkit.core.values.questions import OptionRequest
from skillkit.core.values.text import shown_path
from skillkit.packages.question import PACKAGES, packages_shown
from skillkit.packages.values import size_text
from skillkit.web.access import session_of
from skillkit.web.context import context_of, form_of
from skillkit.web.html import Refusal, links_of, problem_page, render
from skillkit.web.preparations import Job
from skillkit.web.views.prompt import Question

__all__ = ["packages_page", "place_after", "preparing_values", "start_page"]

# So long who pressed the button waits for the list itself; then for a page that says that it is being made.
QUICK_SECONDS = 2.0
COLUMNS = ("language", "name", "version", "size", "age", "source", "where", "resembles")
UNPROVEN = "This page was open for long. Look at it again, then press the button."
STOP = "stop"


def packages_page(request: Request) -> Response:
    """What goes on for a skill, or what could."""
    name = request.path_params["name"]
    context = context_of(request)
    job = context.preparations.find(name)
    if job is None and not _is_known(request, name):
        return problem_page(request, 404, "No such skill", "This page knows no skill of that name.")
    return _page(request, name, job)


async def start_page(request: Request) -> Response:
    """A pressed button: begin, or stop what goes on."""
    form = await form_of(request) or {}
    token, act = (form[name][0] if len(form.get(name, ())) == 1 else "" for name in ("token", "act"))
    return await run_in_threadpool(_act, request, token, act)


def _act(request: Request, token: str, act: str) -> Response:
    name, context = request.path_params["name"], context_of(request)
    if context.access.form_age(token, session_of(request, context.access), _shown(name)) is None:
        return _page(request, name, context.preparations.find(name), status=Refusal.FORM.status, notice=UNPROVEN)
    if act == STOP:
        job = context.preparations.find(name)
        if job is not None:
            job.cancel.set()
            job.over.wait(QUICK_SECONDS)
        return RedirectResponse(links_of(request).packages(name), 303)
    if not _is_known(request, name):
        return problem_page(request, 404, "No such skill", "This page knows no skill of that name.")
    try:
        job = context.preparations.start(name)
    except SkillKitError as error:
        return _page(request, name, None, status=409, notice=str(error))
    job.news.wait(QUICK_SECONDS)
    place = links_of(request).request(job.request_id) if _asks(request, job) else links_of(request).packages(name)
    return RedirectResponse(place, 303)


def preparing_values(request: Request, question: Question) -> dict[str, Any]:
    """For a question's page: a button where the skill lacks packages, a table where it is about packages itself."""
    values: dict[str, Any] = {"prepare": None, "packages": _listed(question.request)}
    prompt = question.prompt
    if prompt is None or not any(need.kind == "package" and not need.is_met for need in prompt.needs):
        return values
    name = _name_of(request, prompt.skill, prompt.origin)
    return values if name is None else {**values, "prepare": {"name": name, "token": _token(request, name)}}


def place_after(request: Request, request_id: str) -> str:
    """Where a browser goes once it answered: to what it began, or to what else waits."""
    job = context_of(request).preparations.asking(request_id)
    links = links_of(request)
    return links.packages(job.skill) if job is not None else links.to("/", answered=request_id)


def _page(request: Request, name: str, job: Job | None, *, status: int = 200, notice: str = "") -> Response:
    plans = job.done.plans if job is not None and job.done is not None else ()
    size = sum(each.mark.size for each in job.done.environments) if job is not None and job.done is not None else 0
    values = {
        "name": name,
        "job": job,
        "asks": job is not None and _asks(request, job),
        "is_over": job is None or job.over.is_set(),
        "listed": packages_shown(plans, time.time()),
        "size": size_text(size) if size else "",
        "notice": notice,
        "token": _token(request, name),
    }
    return render(request, "packages", values, status=status)


def _asks(request: Request, job: Job) -> bool:
    found = context_of(request).world.find(job.request_id) if job.request_id else None
    return isinstance(found, OptionRequest) and not job.over.is_set()


def _shown(name: str) -> str:
    return f"packages of {name}"


def _token(request: Request, name: str) -> str:
    access = context_of(request).access
    return access.form_token(session_of(request, access), _shown(name))


def _is_known(request: Request, name: str) -> bool:
    manager = context_of(request).manager
    try:
        return manager is not None and bool(manager.get_skill(name))
    except SkillKitError:
        return False


def _name_of(request: Request, skill: str, origin: str) -> str | None:
    """By which this page's manager opens the very folder that the question is about."""
    manager = context_of(request).manager
    try:
        known = manager.skill_places(include_shadowed=True).items() if manager is not None else ()
    except (SkillKitError, OSError):
        return None
    places = ((name, each.name, each.skill_path.parent) for name, found in known for each in found[:1])
    return next((name for name, own, folder in places if own == skill and origin in _spellings(folder)), None)


def _spellings(folder: os.PathLike[str]) -> Iterable[str]:
    return {shown_path(os.fspath(folder)), shown_path(real_path(folder))}


def _listed(request: OptionRequest) -> dict[str, Any] | None:
    """What a question about packages lists; None for any other, and where somebody else wrote it."""
    listed, notes = request.context.get(PACKAGES), request.context.get("notes")
    if not isinstance(listed, list) or not isinstance(notes, list):
        return None
    is_ours = all(isinstance(each, dict) and all(isinstance(each.get(k), str) for k in COLUMNS) for each in listed)
    return {"rows": listed, "notes": notes} if is_ours and all(isinstance(each, str) for each in notes) else None
