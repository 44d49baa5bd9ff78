"""A question about a run elsewhere -> whether what it shows is what would run; whoever shows or answers it looks here.

A front writes what a person is shown, and a front may lie. So the prompt is made again from the order and the skill's
bytes: the question's id is the order's, the bytes are those of the digest, and everything that tells what runs, with
what, within which walls has to be the same; so has what is said beside that, as far as it can be known (`claims`). How
it differs is told in our own words: nothing that the front wrote gets into them. Who asks for something else is not
answered with yes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from skillkit.core.ask.approvals import is_whole_list
from skillkit.core.ask.prompt import STDIN_CHARACTERS, new_and_not_shown, prompt_for, stdin_text
from skillkit.core.ask.questions import title_of
from skillkit.core.ask.reach import wall_sentences
from skillkit.core.exceptions import RequestClosedError, SkillKitError, StateUnavailableError
from skillkit.core.flow.granting import warning_of
from skillkit.core.models.digest import manifest_of
from skillkit.core.store.base import Store
from skillkit.core.values.bounds import walls_digest
from skillkit.core.values.grants import grant_label
from skillkit.core.values.needs import Grant
from skillkit.core.values.policy import GUARDED
from skillkit.core.values.questions import KEEPS, OPTIONS, WALLS, OptionRequest, Prompt
from skillkit.core.values.runs import ScriptCommand
from skillkit.core.values.text import shown_path
from skillkit.fleet.claims import is_compared, wrong_claims
from skillkit.fleet.front import ORDER, TRAVELLING_GRANTS
from skillkit.fleet.orders import Order, policy_from
from skillkit.fleet.rows import Rows, shared
from skillkit.fleet.walls import is_within, most_of
from skillkit.fleet.work.fetching import Materials

__all__ = ["can_compare", "difference", "require_true"]

UNREADABLE = "its order or its prompt cannot be read, or the bytes that it is about are not there"
PROMPTS_KEPT = 200

fleet_log = logging.getLogger("skillkit.fleet")


def require_true(store: Store, request: OptionRequest) -> None:
    """RequestClosedError for a question that shows another run than its id stands for."""
    if wrong := difference(store, request):
        raise RequestClosedError(
            f"The request {request.id!r} does not show the run that it is about: {wrong}. Nothing was approved. Answer "
            "it with no, and look at who asks.",
            request_id=request.id,
        )


def difference(store: Store, request: OptionRequest) -> str:
    """The first thing in which it differs from its run; empty where it is true.

    StateUnavailableError where the shared world cannot be asked, which says nothing about the question.
    """
    try:
        return next(_differences(store, request), "")
    except StateUnavailableError:
        raise
    except (SkillKitError, OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        fleet_log.info("The question %s cannot be checked: %s", request.id, error)
        return UNREADABLE


def can_compare(store: Store, request: OptionRequest) -> bool:
    """Of a question that is true: whether what it says of changes was compared again."""
    shown = Prompt.from_context(request.context)
    return shown is None or is_compared(shown, _materials(store))


def _differences(store: Store, request: OptionRequest) -> Iterator[str]:
    order, shown = Order.from_text(str(request.context[ORDER])), Prompt.from_context(request.context)
    if order.id != request.id:
        yield "its id is not the order's"
    if shown is None or request.session_id != order.session_id or request.options != OPTIONS:
        yield "it is no question about a run, or of another session"
        return
    materials = _materials(store)
    command = _command(order, materials)
    true = _prompt(order, command, shown)
    for name in ("skill", "digest", "commands", "marks"):
        if getattr(true, name) != getattr(shown, name):
            yield f"its {name} are others"
    if shown.risks != (*new_and_not_shown(shown.changes or (), order.skill), *true.risks):
        yield "its risks are others"
    if shown.walls != true.walls:
        yield "its walls are others"
    if request.title != title_of(command) or request.message != " ".join(shown.reasons):
        yield "its title or its message is another"
    if not is_within(order.bounds, most_of(store, order)):
        yield "it would give more than it shows"
    yield from _wrong_keeping(request, order, command)
    yield from _wrong_ticks(request)
    yield from wrong_claims(store, order, shown, materials)


def _wrong_keeping(request: OptionRequest, order: Order, command: ScriptCommand) -> Iterator[str]:
    """What a yes for the session would be kept as: the walls that are shown, and of a list no more than is shown."""
    kept = request.context.get(KEEPS)
    if request.context.get(WALLS) != walls_digest([order.bounds]) or (kept and kept["walls"] != order.walls):
        yield "what it keeps has other walls"
    if kept and kept["on_load"] not in ("", order.from_instructions if is_whole_list(command) else ""):
        yield "what it keeps is about commands that it does not show"


_known_materials: dict[tuple[str, Path], Materials] = {}


def _materials(store: Store) -> Materials:
    """One for all questions of a world: what was fetched for one is there for the next."""
    key = (store.place, store.folder)
    found = _known_materials.get(key)
    if found is None or not found.is_of(store):
        found = _known_materials[key] = Materials(Rows(shared(store)), store.folder / "fleet" / "skills")
    return found


def _wrong_ticks(request: OptionRequest) -> Iterator[str]:
    for tick in request.grants:
        grant = None
        with suppress(SkillKitError):
            grant = Grant.from_id(tick.id)
        if grant is None or grant.kind not in TRAVELLING_GRANTS or tick.label != grant_label(grant):
            yield "it offers something else than it says"
        elif tick.warning != warning_of(grant):
            yield "it does not warn of what it offers"
    kept = request.context.get(KEEPS)
    if kept and any(grants != [tick] for tick, grants in kept["offered"].items()):
        yield "its ticks give something else"


def _command(order: Order, materials: Materials) -> ScriptCommand:
    """What would run, as far as a person is shown it."""
    return _command_in(materials.skill(order).base_directory, order, materials.stdin(order))


def _command_in(folder: Path, order: Order, stdin: bytes) -> ScriptCommand:
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
        stdin=stdin,
        timeout=order.timeout,
        output_limit=order.output_limit,
        arguments=None,
        script_arguments=order.words,
        session_id=order.session_id,
        workspace=None,
        from_instructions=order.from_instructions,
    )


def _prompt(order: Order, command: ScriptCommand, shown: Prompt) -> Prompt:
    """What differs from run to run of one script is put in last, so that its code is read once for all of them."""
    given = stdin_text(command.stdin)
    starts_in = _starts_in(order, shown)
    if len(given) > STDIN_CHARACTERS:
        return _read_prompt(order, command, shown.origin, starts_in)
    plain = replace(order, words=(), stdin="", inputs=(), session_id="", call_id="", from_instructions="")
    base = _kept_prompt(plain, command.base_directory, shown.origin, starts_in)
    (shown_command,) = base.commands
    words = tuple(map(shown_path, order.words))
    return replace(base, commands=(replace(shown_command, argv=words, stdin=given),))


@lru_cache(maxsize=PROMPTS_KEPT)
def _kept_prompt(order: Order, folder: Path, origin: str, starts_in: str) -> Prompt:
    """For the content of the order's digest, which the folder was proven to have."""
    return _read_prompt(order, _command_in(folder, order, b""), origin, starts_in)


def _starts_in(order: Order, shown: Prompt) -> str:
    """Where policy leaves it to the script, the worker looks again; both are within what is shown."""
    chosen = policy_from(order.policy, GUARDED).working_directory if order.workspace else "skill"
    if chosen != "auto":
        return chosen
    return "workspace" if "It starts in the workspace." in shown.walls else "skill"


def _read_prompt(order: Order, command: ScriptCommand, origin: str, starts_in: str) -> Prompt:
    bounds = order.bounds
    ordered = policy_from(order.policy, GUARDED)
    policy = replace(ordered, allowed_hosts=bounds.hosts, pass_environment=bounds.variables)
    walls = wall_sentences(
        policy,
        tier=bounds.tier,
        skill=origin,
        workspace=bounds.workspace or None,
        granted=(),
        timeout=order.timeout,
        is_root=bounds.as_root,
        secrets=bounds.secrets,
        starts_in=(starts_in,),
    )
    return prompt_for(
        (command,),
        origin=origin,
        reasons=(),
        manifest=manifest_of(Path(command.base_directory)),
        source_folder=Path(command.base_directory),
        approved_folder=None,
        walls=walls,
        bounds=(bounds,),
    )
