"""A question about a run elsewhere -> whether what it shows is what would run; whoever answers it looks here first.

A front writes what a person is shown, and a front may lie. So before a yes is written, the prompt is made again from
the order and the skill's bytes: the question's id is the order's, the bytes are those of the digest, and everything
that tells what runs, with what, within which walls has to be the same. Who asks for something else is not answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from skillkit.core.ask.prompt import prompt_for
from skillkit.core.ask.questions import title_of
from skillkit.core.ask.reach import PROGRAMS, wall_sentences
from skillkit.core.exceptions import RequestClosedError, SkillKitError
from skillkit.core.flow.granting import warning_of
from skillkit.core.models.digest import manifest_of
from skillkit.core.store.base import Store
from skillkit.core.values.bounds import walls_digest
from skillkit.core.values.grants import grant_label
from skillkit.core.values.needs import Grant
from skillkit.core.values.policy import GUARDED
from skillkit.core.values.questions import KEEPS, OPTIONS, WALLS, OptionRequest, Prompt
from skillkit.core.values.runs import ScriptCommand
from skillkit.fleet.front import ORDER, TRAVELLING_GRANTS
from skillkit.fleet.orders import Order, policy_from
from skillkit.fleet.rows import Rows, shared
from skillkit.fleet.work.fetching import Materials

__all__ = ["require_true"]


def require_true(store: Store, request: OptionRequest) -> None:
    """RequestClosedError for a question that shows another run than its id stands for."""
    try:
        wrong = next(_differences(store, request), "")
    except (SkillKitError, KeyError, TypeError, ValueError) as error:
        wrong = f"it cannot be checked ({error})"
    if wrong:
        raise RequestClosedError(
            f"The request {request.id!r} does not show the run that it is about: {wrong}. Nothing was approved. Answer "
            "it with no, and look at who asks.",
            request_id=request.id,
        )


def _differences(store: Store, request: OptionRequest) -> Iterator[str]:
    text = str(request.context[ORDER])
    order, shown = Order.from_text(text), Prompt.from_context(request.context)
    if order.id != request.id:
        yield "its id is not the order's"
    if shown is None or request.session_id != order.session_id or request.options != OPTIONS:
        yield "it is no question about a run, or of another session"
        return
    materials = Materials(Rows(shared(store)), store.folder / "fleet" / "skills")
    command = _command(order, materials)
    true = _prompt(order, command, shown)
    for name in ("skill", "digest", "commands", "marks"):
        if getattr(true, name) != getattr(shown, name):
            yield f"its {name} are others"
    if not {*true.risks} <= {*shown.risks}:
        yield "it leaves out risks"
    if [each for each in shown.walls if not each.startswith(PROGRAMS)] != [*true.walls]:
        yield "its walls are others"
    if request.title != title_of(command):
        yield "its title is another"
    kept = request.context.get(KEEPS)
    if request.context.get(WALLS) != walls_digest([order.bounds]) or (kept and kept["walls"] != order.walls):
        yield "what it keeps has other walls"
    yield from _wrong_ticks(request)


def _wrong_ticks(request: OptionRequest) -> Iterator[str]:
    for tick in request.grants:
        grant = None
        with suppress(SkillKitError):
            grant = Grant.from_id(tick.id)
        if grant is None or grant.kind not in TRAVELLING_GRANTS or tick.label != grant_label(grant):
            yield f"it offers {tick.id!r} as {tick.label!r}"
        elif tick.warning != warning_of(grant):
            yield f"it does not warn of {tick.id!r}"
    kept = request.context.get(KEEPS)
    if kept and any(grants != [tick] for tick, grants in kept["offered"].items()):
        yield "its ticks give something else"


def _command(order: Order, materials: Materials) -> ScriptCommand:
    """What would run, as far as a person is shown it."""
    folder = materials.skill(order).base_directory
    return ScriptCommand(
        skill_name=order.skill,
        digest=order.digest,
        base_directory=folder,
        script_path=folder / order.script,
        script_name=order.script,
        interpreter=order.interpreter,
        allowed_tools=(),
        argv=(),
        cwd=str(folder),
        environment={},
        stdin=materials.stdin(order),
        timeout=order.timeout,
        output_limit=order.output_limit,
        arguments=None,
        script_arguments=order.words,
        session_id=order.session_id,
        workspace=None,
    )


def _prompt(order: Order, command: ScriptCommand, shown: Prompt) -> Prompt:
    bounds = order.bounds
    ordered = policy_from(order.policy, GUARDED)
    policy = replace(ordered, allowed_hosts=bounds.hosts, pass_environment=bounds.variables)
    walls = wall_sentences(
        policy,
        tier=bounds.tier,
        skill=shown.origin,
        workspace=bounds.workspace or None,
        granted=(),
        timeout=order.timeout,
        is_root=bounds.as_root,
        secrets=bounds.secrets,
        starts_in=("workspace" if order.workspace and policy.working_directory == "workspace" else "skill",),
    )
    return prompt_for(
        (command,),
        origin=shown.origin,
        reasons=shown.reasons,
        manifest=manifest_of(Path(command.base_directory)),
        source_folder=Path(command.base_directory),
        approved_folder=None,
        walls=walls,
        bounds=(bounds,),
    )
