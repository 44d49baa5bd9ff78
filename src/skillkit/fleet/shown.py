"""Questions about runs elsewhere -> as a person may see them: as they were asked, or that they do not show their run.

Theory of operation. A front writes what a person is shown, and a front may lie. So nobody is shown a question about an
order before it was looked at (`showing`): one that shows something else than would run is shown as that, without what
it says, and only no can be answered. To look takes a few milliseconds for each new skill, so what was seen is
remembered by all that the question carries. Of a long list that nobody looked at yet, the first are looked at while the
person waits, and the others in a thread; until then they are shown as not looked at. Before a yes is written, the
question is looked at once more, whatever is remembered (`showing.require_true`).

A question about scripts that is about no order has nothing to be looked at by. It is shown where who asks runs scripts
itself; a login that only orders can win nothing by it but a person who believes it, so it is shown as that too.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from typing import NamedTuple

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.store.base import Store
from skillkit.core.store.request_rows import ids_that_order
from skillkit.core.values.questions import NO, OPTIONS, ORDERED, OptionRequest, Prompt
from skillkit.fleet.claims import without_comparison
from skillkit.fleet.showing import can_compare, difference

__all__ = ["as_may_be_shown", "news"]

LIST_SECONDS = 0.3
"""How long who asks for a list waits for looks."""
AGAIN_SECONDS = 60.0
"""After this a question that did not show its run is looked at again: what was missing may be there."""
MOST_REMEMBERED = 20_000
FALSE_TITLE = "A question that does not show its run"
FALSE = "This question does not show the run that it is about: {0}. Only no can be answered. Look at who asks."
UNSEEN_TITLE = "A question that is being looked at"
UNSEEN = "Whether it shows the run that it is about is not known yet. Open it, or wait a moment."
NO_ORDER = "it is about no order, and who asks may not run scripts"
AWAY = "it cannot be checked now"

fleet_log = logging.getLogger("skillkit.fleet")


class _Seen(NamedTuple):
    """What a look found: nothing, or how the question differs from its run; and until when that counts."""

    wrong: str
    until: float
    can_compare: bool = True
    """False where what it says of changes is its word alone."""


class _Looks:
    """What was seen in this process, and the thread that looks at the rest of long lists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}
        self._waiting: dict[str, tuple[Store, OptionRequest]] = {}
        self._thread: threading.Thread | None = None
        self.rounds = 0
        """How often the thread was done with all that waited."""

    def known(self, key: str) -> str | None:
        """None where nobody looked, or that is too long ago."""
        with self._lock:
            seen = self._seen.get(key)
        return seen.wrong if seen is not None and seen.until > time.monotonic() else None

    def look(self, store: Store, key: str, request: OptionRequest) -> str:
        try:
            wrong = difference(store, request)
            compares = bool(wrong) or can_compare(store, request)
        except StateUnavailableError:
            return AWAY  # says nothing of the question
        with self._lock:
            if len(self._seen) >= MOST_REMEMBERED:
                self._seen.clear()
            is_final = compares and not wrong
            self._seen[key] = _Seen(wrong, float("inf") if is_final else time.monotonic() + AGAIN_SECONDS, compares)
        return wrong

    def can_compare(self, key: str) -> bool:
        with self._lock:
            seen = self._seen.get(key)
        return seen is not None and seen.can_compare

    def look_later(self, store: Store, requests: Iterable[tuple[str, OptionRequest]]) -> None:
        with self._lock:
            self._waiting.update((key, (store, request)) for key, request in requests)
            if self._waiting and self._thread is None:
                self._thread = threading.Thread(target=self._work, name="skillkit-looks", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    self.rounds += 1
                    return
                key = next(iter(self._waiting))
                store, request = self._waiting.pop(key)
            try:
                if self.known(key) is None:
                    self.look(store, key, request)
            except Exception:  # noqa: BLE001 - one that cannot be looked at stays unseen, and holds up no other
                fleet_log.exception("The question %s cannot be looked at", request.id)


_looks = _Looks()


def news() -> int:
    """Another number after the rest of a long list was looked at: who shows that list shows it again."""
    return _looks.rounds


def as_may_be_shown(store: Store, requests: Sequence[OptionRequest], *, is_list: bool = True) -> list[OptionRequest]:
    """The same, those about runs elsewhere as they are; one alone is looked at however long that takes."""
    until = time.monotonic() + LIST_SECONDS if is_list else float("inf")
    shown, later = [], []
    groundless = _groundless(store, requests)
    for request in requests:
        if not request.id.startswith(ORDERED):
            shown.append(_shown(request, NO_ORDER if request.id in groundless else ""))
            continue
        key = _key(store, request)
        wrong = _looks.known(key)
        if wrong is None and time.monotonic() < until:
            wrong = _looks.look(store, key, request)
        if wrong is None:
            later.append((key, request))
        shown.append(_shown(request, wrong, can_compare=_looks.can_compare(key)))
    if later:
        _looks.look_later(store, later)
    return shown


def _groundless(store: Store, requests: Iterable[OptionRequest]) -> set[str]:
    """Questions about scripts, but about no order, of logins that only order."""
    ids = [each.id for each in requests if each.is_about_scripts and not each.id.startswith(ORDERED)]
    if not ids:
        return set()
    with store.connection() as connection:
        return ids_that_order(connection, ids)


def _shown(request: OptionRequest, wrong: str | None, *, can_compare: bool = True) -> OptionRequest:
    """Nothing of what a question says is shown before it is known to be true."""
    if wrong == "":
        return request if can_compare else _without_comparison(request)
    title, message = (UNSEEN_TITLE, UNSEEN) if wrong is None else (FALSE_TITLE, FALSE.format(wrong))
    only_no = tuple(option for option in OPTIONS if option.id == NO)
    return replace(request, title=title, message=message, options=only_no, context={}, grants=())


def _without_comparison(request: OptionRequest) -> OptionRequest:
    prompt = Prompt.from_context(request.context)
    if prompt is None:
        return request
    return replace(request, context={**request.context, **without_comparison(prompt).to_context()})


def _key(store: Store, request: OptionRequest) -> str:
    """Of all that it carries: whoever asks may give another question the same id and the same moment."""
    options = [*map(asdict, request.options), "and", *map(asdict, request.grants)]
    carried = [store.place, request.id, request.title, request.message, request.session_id, options]
    return sha256(json.dumps([*carried, dict(request.context)]).encode()).hexdigest()
