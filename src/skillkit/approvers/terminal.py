"""A request -> the answer that a person gives on the controlling terminal, with one key and no default."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from skillkit.approvers.screen import (
    ESCAPE,
    INTERRUPTS,
    SUSPEND,
    Screen,
    controlling_terminal,
    terminal_lock,
    unavailable,
)
from skillkit.core.ask.changes import file_text, skill_files
from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.store.state import state_folder
from skillkit.core.values.questions import (
    REASON_CHARACTERS,
    Cancel,
    Option,
    OptionAnswer,
    OptionRequest,
    Prompt,
)
from skillkit.core.values.text import visible
from skillkit.present.request import (
    NARROWEST,
    answer_lines,
    decision_text,
    diff_text,
    prompt_text,
    source_text,
    tick_keys,
    walls_text,
)
from skillkit.present.terminal import cut, width_of, wrap

__all__ = ["TerminalApprover"]

ALL_DIGITS = "123456789"
# Somebody who was typing something else when the question appeared did not mean to answer it.
SETTLE_SECONDS = 0.3
ROWS_AROUND = 3
# The blank lines between ticks, options and the last line.
ROWS_BELOW_TICKS = 2
NO = "no"
REASON_KEYS = (("n",), ("N",), ("r",), ("R",))
SHOWN_CHARACTERS = 1_000_000
BACKSPACES = ("\x7f", "\x08")
FIRST_BYTE_OF_OTHERS = 0x80
SAVE_PLACE, GO_BACK = "\x1b7", "\x1b8"
REFUSING = (ESCAPE, *INTERRUPTS)
OVER_LINE = "\r\x1b[K"
LEAVING = ("q", "Q", *REFUSING)
# Keys that move by lines, by pages that share a line, or to an end.
BY_LINES = {"down": 1, "j": 1, "\n": 1, "\r": 1, "up": -1, "k": -1}
BY_PAGES = {" ": 1, "page down": 1, "f": 1, "page up": -1, "b": -1}
TO_ENDS = {"home": -1, "g": -1, "end": 1, "G": 1}
HOME, CLEAR_LINE, CLEAR_BELOW, REVERSE, NORMAL = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[7m", "\x1b[0m"


class TerminalApprover:
    """Asks on the terminal that this process belongs to; stdin, stdout and stderr are never read or written."""

    channel = "terminal"

    def __init__(self, *, state_dir: str | Path | None = None) -> None:
        self._state_dir = state_dir

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        """Esc, Ctrl-C and Ctrl-D are `no`; a terminal that cannot be asked or is closed is unavailable."""
        _require_answerable(request)
        folder = state_folder(self._state_dir)
        require_wanted = partial(_require_open, request, cancel, _deadline_of(request))
        require_wanted()
        with (
            controlling_terminal() as descriptor,
            terminal_lock(folder, require_wanted),
            Screen(descriptor, require_wanted) as screen,
        ):
            question = _Question(screen, request, folder)
            option = question.answer()
        ticked = question.ticked if option.id != NO else ()
        return OptionAnswer(option.id, self.channel, time.time(), request.id, ticked, question.reason)


class _Question:
    """One request while it is on the screen."""

    def __init__(self, screen: Screen, request: OptionRequest, state_folder: Path) -> None:
        self._screen = screen
        self._state_folder = state_folder
        self._request = request
        self._prompt = Prompt.from_context(request.context)
        self._drawn_columns = 0
        self._last_line = ""
        self._ticked: set[str] = set()
        self.reason = ""

    @property
    def ticked(self) -> tuple[str, ...]:
        """In the order in which they are offered."""
        return tuple(tick.id for tick in self._request.grants if tick.id in self._ticked)

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
            keys = self._screen.read_keys(together=True)
            if keys and all(key in REFUSING for key in keys):
                return _refusal_of(self._request)
            option = _option_for(keys, self._request.options)
            if option is None and keys in REASON_KEYS and _has_refusal(self._request):
                option = self._ask_reason()
                if option is None:
                    continue
            if option is not None:
                return option
            self._react(keys)

    def _react(self, keys: tuple[str, ...]) -> None:
        if all(len(key) > 1 for key in keys):  # none, or arrows and the like
            return
        if len(keys) == 1 and keys[0] in tick_keys(self._request):
            self._toggle(tick_keys(self._request).index(keys[0]))
            return
        if keys in (("v",), ("V",)) and self._prompt:
            self._page("Source", self._source_text)
        elif keys in (("d",), ("D",)) and self._prompt and self._prompt.changes:
            self._page("Changes", partial(diff_text, self._prompt, color=self._screen.has_color))
        elif keys in (("w",), ("W",)) and self._prompt:
            self._page("Walls", partial(walls_text, self._prompt, color=self._screen.has_color))
        elif keys == (SUSPEND,):
            self._screen.suspend()
            self._draw()
        else:
            self._show_last_line(self._keys_that_answer("Nothing chosen yet. "))

    def _toggle(self, number: int) -> None:
        """Ticks or unticks, and shows it where it stands; said in the last line too, which is always in sight."""
        self._ticked ^= {self._request.grants[number].id}
        self._redraw_ticks()
        keys = zip(tick_keys(self._request), self._request.grants, strict=False)
        words = [key for key, tick in keys if tick.id in self._ticked]
        state = f"Ticked: {', '.join(words)}." if words else "Nothing ticked."
        self._show_last_line(self._keys_that_answer(f"{state} "))

    def _redraw_ticks(self) -> None:
        columns, rows = self._screen.size()
        ticks, options = answer_lines(self._request, columns, self._ticked, color=self._screen.has_color)
        above = len(ticks) + len(options) + ROWS_BELOW_TICKS + len(self._lines_of_keys())
        if self._screen.is_plain or above >= rows or columns != self._drawn_columns:
            return
        lines = "".join(f"{CLEAR_LINE}{line}\r\n" for line in ticks)
        self._screen.write(f"{SAVE_PLACE}\r\x1b[{above}A{lines}{GO_BACK}")

    def _ask_reason(self) -> Option | None:
        """A no with what the person types; Esc goes back to the question."""
        said = b""
        while True:
            text = said.decode("utf-8", "replace")
            self._show_last_line(f"No, because: {visible(text)}_ (Enter answers no, Esc goes back)")
            for key in self._screen.read_keys(together=False):
                if key in REFUSING:
                    self._show_last_line(self._keys_that_answer("Nothing chosen yet. "))
                    return None
                if key in ("\r", "\n"):
                    self.reason = said.decode("utf-8", "replace").strip()
                    return _refusal_of(self._request)
                if key in BACKSPACES:
                    said = said.decode("utf-8", "replace")[:-1].encode()
                elif len(key) == 1 and (key.isprintable() or ord(key) >= FIRST_BYTE_OF_OTHERS):
                    said = (said + key.encode("latin-1"))[:REASON_CHARACTERS]

    def _draw(self) -> None:
        """All that there is to read, a moment to see it, and only then the line that takes an answer."""
        columns, rows = self._screen.size()
        if columns < NARROWEST:
            raise unavailable(
                f"the terminal is {columns} columns wide and a question needs {NARROWEST}", "Widen it and try again"
            )
        self._drawn_columns = columns
        self._last_line = ""
        keys = "".join(f"{line}\n" for line in self._lines_of_keys())
        self._screen.write(f"\n{self._fitted(columns, rows)}\n{keys}")
        self._screen.pause(SETTLE_SECONDS)
        self._screen.drop_input()
        shown = "" if keys else self._keys_that_show()
        self._show_last_line(f"{self._keys_that_answer()}{shown}")

    def _fitted(self, columns: int, rows: int) -> str:
        """As much as fits, so that the command is in sight when it is answered."""
        color, free = self._screen.has_color, rows - ROWS_AROUND - len(self._lines_of_keys())
        return prompt_text(self._request, columns, color=color, rows=free, ticked=self._ticked)

    def _page(self, title: str, text_for: Callable[[int], str]) -> None:
        _show_pages(self._screen, title, text_for)
        if self._screen.is_plain:
            self._draw()
        self._screen.drop_input()

    def _source_text(self, columns: int) -> str:
        """Of what would run first, then of every other file of the skill: a yes for the session is for all of them."""
        assert self._prompt is not None  # noqa: S101 - there is no key for it without one
        texts, room = [], SHOWN_CHARACTERS
        for name, path in skill_files(self._state_folder, self._prompt):
            text = file_text(path) if room > 0 else "[not read: there is too much; see it in its folder]"
            room -= len(text)
            texts.append((name, text))
        ticks, color = self._request.grants, self._screen.has_color
        return source_text(self._prompt, columns, texts, ticks=ticks, color=color)

    def _keys_that_answer(self, state: str = "") -> str:
        """In one line; where that has no room for Esc, a line above says what it means."""
        *digits, last = (str(number) for number in range(1, len(self._request.options) + 1))
        named = f"{', '.join(digits)} or {last}" if digits else last
        with_escape = f"{state}Press {named}. {self._escape()}"
        return with_escape if self._has_room(with_escape) else f"{state}Press {named}."

    def _escape(self) -> str:
        return f"Esc {'is no' if _has_refusal(self._request) else 'gives no answer'}."

    def _lines_of_keys(self) -> list[str]:
        """What stands above the last line where that is too narrow for all the keys."""
        answer, show = self._keys_that_answer(), self._keys_that_show().strip()
        if self._has_room(f"{answer} {show}"):
            return []
        told = show if answer.endswith(self._escape()) else f"{self._escape()} {show}".strip()
        return list(wrap(told, self._drawn_columns - 1)) if told else []

    def _has_room(self, line: str) -> bool:
        return width_of(line) < self._drawn_columns

    def _keys_that_show(self) -> str:
        ticks = tick_keys(self._request)
        keys = [f"{ticks[0]}-{ticks[-1]} tick" if len(ticks) > 1 else f"{ticks} tick"] if ticks else []
        if self._prompt is None:
            return f" {keys[0]}." if keys else ""
        keys += ["v source", *(["d changes"] if self._prompt.changes else []), "w walls"]
        keys += ["n why not"] if _has_refusal(self._request) else []
        return f" {', '.join(keys)}."

    def _show_last_line(self, text: str) -> None:
        line = cut(text, self._drawn_columns - 1)
        if line != self._last_line:
            over = "" if not self._last_line else "\n" if self._screen.is_plain else OVER_LINE
            self._screen.write(f"{over}{line}")
            self._last_line = line

    def _leave(self, text: str) -> None:
        over = "\n" if self._screen.is_plain else OVER_LINE
        self._screen.say_last(f"{over if self._last_line else ''}{cut(text, max(self._drawn_columns, NARROWEST))}\n")


def _option_for(keys: tuple[str, ...], options: tuple[Option, ...]) -> Option | None:
    """One digit, pressed alone; several keys at once are a paste or an accident."""
    if len(keys) == 1 and keys[0] in ALL_DIGITS[: len(options)]:
        return options[int(keys[0]) - 1]
    return None


def _refusal_of(request: OptionRequest) -> Option:
    for option in request.options:
        if option.id == "no":
            return option
    raise unavailable("the question was dismissed", "Ask again and choose one of its options")


def _has_refusal(request: OptionRequest) -> bool:
    return any(option.id == "no" for option in request.options)


def _require_answerable(request: OptionRequest) -> None:
    count = len(request.options)
    if not 1 <= count <= len(ALL_DIGITS):
        raise unavailable(
            f"the question has {count} options and a terminal takes 1 to {len(ALL_DIGITS)}",
            "Offer fewer, or ask through another channel",
        )


def _deadline_of(request: OptionRequest) -> float:
    """On a clock that never jumps; endless without an expiry."""
    return time.monotonic() + request.expires_at - time.time() if request.expires_at > 0 else float("inf")


def _require_open(request: OptionRequest, cancel: Cancel | None, deadline: float) -> None:
    """Raises once an answer would come too late."""
    if cancel is not None and cancel.is_set():
        raise unavailable("the question was withdrawn", "Run it again to be asked again")
    if time.monotonic() >= deadline or 0 < request.expires_at <= time.time():
        raise unavailable("the question expired", "Run it again and answer in time")


def _show_pages(screen: Screen, title: str, text_for: Callable[[int], str]) -> None:
    """A view that a person can move in, and leave; nothing they press there is an answer.

    Draws again whenever the window's size changes; `text_for` gives the text for so many columns.
    """
    if screen.is_plain:
        screen.write("\n" + text_for(screen.size()[0]) + "\n")
        return
    with screen.second_screen():
        lines: list[str] = []
        top, shown, width = 0, None, 0
        while True:
            columns, rows = screen.size()
            if columns != width:
                before, lines = max(len(lines), 1), text_for(columns).rstrip("\n").split("\n")
                top, width = top * len(lines) // before, columns
            top = _top_after("", top, height=rows - 1, count=len(lines))
            if shown != (top, columns, rows):
                screen.write(_page(lines, top, title, columns, rows))
                shown = (top, columns, rows)
            for key in screen.read_keys(together=False):
                if key in LEAVING:
                    return
                top = _top_after(key, top, height=rows - 1, count=len(lines))


def _top_after(key: str, top: int, *, height: int, count: int) -> int:
    """The first line to show after this key; the last page stays full."""
    step = BY_LINES.get(key, 0) + BY_PAGES.get(key, 0) * (height - 1) + TO_ENDS.get(key, 0) * count
    return max(0, min(top + step, count - height))


def _page(lines: list[str], top: int, title: str, columns: int, rows: int) -> str:
    height = max(rows - 1, 1)
    visible_lines = lines[top : top + height]
    # Cleared before it is written: a terminal that has just filled a line would clear its last character.
    body = "".join(f"{CLEAR_LINE}{line}\n" for line in visible_lines)
    last = top + len(visible_lines)
    place = f"{title}, {top + 1:,} to {last:,} of {len(lines):,}. Space and arrows move, q goes back."
    return f"{HOME}{body}{CLEAR_BELOW}\x1b[{rows};1H{REVERSE} {cut(place, columns - 2)} {NORMAL}"
