"""A request -> the answer that a person gives on the controlling terminal, with one key and no default."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from skillkit.approvers.keys import ESCAPE, INTERRUPTS, SUSPEND
from skillkit.approvers.pager import show_pages
from skillkit.approvers.screen import Screen, controlling_terminal, unavailable
from skillkit.approvers.turns import turn_at_terminal
from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.questions import Cancel, Option, OptionAnswer, OptionRequest, Prompt
from skillkit.core.state import state_folder
from skillkit.present.request import NARROWEST, SOURCE_ROWS, decision_text, diff_text, prompt_text, source_text
from skillkit.present.terminal import cut

__all__ = ["TerminalApprover"]

ALL_DIGITS = "123456789"
# Somebody who was typing something else when the question appeared did not mean to answer it.
SETTLE_SECONDS = 0.3
FEWEST_SOURCE_ROWS = 5
ROWS_AROUND = 3
REFUSING = (ESCAPE, *INTERRUPTS)
OVER_LINE = "\r\x1b[K"


class TerminalApprover:
    """Asks on the terminal that this process belongs to; stdin, stdout and stderr are never read or written."""

    channel = "terminal"

    def __init__(self, *, state_dir: str | Path | None = None) -> None:
        self._state_dir = state_dir

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        """Esc, Ctrl-C and Ctrl-D are `no`; a terminal that cannot be asked or is closed is unavailable."""
        require_answerable(request)
        require_wanted = partial(require_open, request, cancel, deadline_of(request))
        require_wanted()
        with (
            controlling_terminal() as descriptor,
            turn_at_terminal(state_folder(self._state_dir), require_wanted),
            Screen(descriptor, require_wanted) as screen,
        ):
            option = Question(screen, request).answer()
        return OptionAnswer(option.id, self.channel, time.time(), request.id)


class Question:
    """One request while it is on the screen."""

    def __init__(self, screen: Screen, request: OptionRequest) -> None:
        self._screen = screen
        self._request = request
        self._prompt = Prompt.from_context(request.context)
        self._drawn_columns = 0
        self._last_line = ""

    def answer(self) -> Option:
        """Whatever happens, a line stays that says how it ended."""
        try:
            option = self._chosen()
        except ApprovalUnavailableError as error:
            self._leave(f"Not approved: {' '.join(error.reasons)}.")
            raise
        except BaseException:
            self._leave("Not approved: interrupted.")
            raise
        self._leave(decision_text(self._request, option, self._drawn_columns))
        return option

    def _chosen(self) -> Option:
        self._draw()
        columns = self._drawn_columns
        while True:
            before, (columns, _) = columns, self._screen.size()
            if columns < self._drawn_columns and columns == before:  # narrower, and no longer being dragged
                self._draw()
            keys = self._screen.pressed(together=True)
            if keys and all(key in REFUSING for key in keys):
                return refusal_of(self._request)
            option = option_for(keys, self._request.options)
            if option is not None:
                return option
            self._react(keys)

    def _react(self, keys: tuple[str, ...]) -> None:
        if all(len(key) > 1 for key in keys):  # none, or arrows and the like
            return
        if keys in (("v",), ("V",)) and self._prompt:
            self._page("Source", partial(source_text, self._prompt, color=self._screen.has_color))
        elif keys in (("d",), ("D",)) and self._prompt and self._prompt.changes:
            self._page("Changes", partial(diff_text, self._prompt, color=self._screen.has_color))
        elif keys == (SUSPEND,):
            self._screen.suspend()
            self._draw()
        else:
            self._show_last_line(f"Nothing chosen yet. {self._keys_that_answer()}")

    def _draw(self) -> None:
        """All that there is to read, a moment to see it, and only then the line that takes an answer."""
        columns, rows = self._screen.size()
        if columns < NARROWEST:
            raise unavailable(
                f"the terminal is {columns} columns wide and a question needs {NARROWEST}", "Widen it and try again"
            )
        self._drawn_columns = columns
        self._last_line = ""
        self._screen.write(f"\n{self._fitted(columns, rows)}\n")
        self._screen.pause(SETTLE_SECONDS)
        self._screen.drop_input()
        self._show_last_line(f"{self._keys_that_answer()}{self._keys_that_show()}")

    def _fitted(self, columns: int, rows: int) -> str:
        """With less of the source where the beginning is out of sight; where that is not enough, said again below."""
        render = partial(prompt_text, self._request, columns, color=self._screen.has_color)
        text = render()
        too_many = text.count("\n") + ROWS_AROUND - rows
        if too_many <= 0:
            return text
        text = render(source_rows=max(SOURCE_ROWS - too_many, FEWEST_SOURCE_ROWS))
        if text.count("\n") + ROWS_AROUND <= rows:
            return text
        return render(source_rows=FEWEST_SOURCE_ROWS, in_short=True)

    def _page(self, title: str, text_for: Callable[[int], str]) -> None:
        show_pages(self._screen, title, text_for)
        if self._screen.is_plain:
            self._draw()
        self._screen.drop_input()

    def _keys_that_answer(self) -> str:
        *digits, last = (str(number) for number in range(1, len(self._request.options) + 1))
        named = f"{', '.join(digits)} or {last}" if digits else last
        return f"Press {named}. Esc {'is no' if has_refusal(self._request) else 'gives no answer'}."

    def _keys_that_show(self) -> str:
        if self._prompt is None:
            return ""
        return " v: source, d: changes." if self._prompt.changes else " v: source."

    def _show_last_line(self, text: str) -> None:
        line = cut(text, self._drawn_columns - 1)
        if line != self._last_line:
            over = "" if not self._last_line else "\n" if self._screen.is_plain else OVER_LINE
            self._screen.write(f"{over}{line}")
            self._last_line = line

    def _leave(self, text: str) -> None:
        over = "\n" if self._screen.is_plain else OVER_LINE
        self._screen.say_last(f"{over if self._last_line else ''}{cut(text, max(self._drawn_columns, NARROWEST))}\n")


def option_for(keys: tuple[str, ...], options: tuple[Option, ...]) -> Option | None:
    """One digit, pressed alone; several keys at once are a paste or an accident."""
    if len(keys) == 1 and keys[0] in ALL_DIGITS[: len(options)]:
        return options[int(keys[0]) - 1]
    return None


def refusal_of(request: OptionRequest) -> Option:
    for option in request.options:
        if option.id == "no":
            return option
    raise unavailable("the question was dismissed", "Ask again and choose one of its options")


def has_refusal(request: OptionRequest) -> bool:
    return any(option.id == "no" for option in request.options)


def require_answerable(request: OptionRequest) -> None:
    count = len(request.options)
    if not 1 <= count <= len(ALL_DIGITS):
        raise unavailable(
            f"the question has {count} options and a terminal takes 1 to {len(ALL_DIGITS)}",
            "Offer fewer, or ask through another channel",
        )


def deadline_of(request: OptionRequest) -> float:
    """On a clock that never jumps; endless without an expiry."""
    return time.monotonic() + request.expires_at - time.time() if request.expires_at > 0 else float("inf")


def require_open(request: OptionRequest, cancel: Cancel | None, deadline: float) -> None:
    """Raises once an answer would come too late."""
    if cancel is not None and cancel.is_set():
        raise unavailable("the question was withdrawn", "Run it again to be asked again")
    if time.monotonic() >= deadline or 0 < request.expires_at <= time.time():
        raise unavailable("the question expired", "Run it again and answer in time")
