"""A conversation -> a model's answer from an OpenAI-compatible endpoint: text as it comes, then its tool calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillkit.chat.failures import broken_off, model_error

__all__ = ["DEFAULT_ADDRESS", "ChatMessage", "Endpoint", "ToolCall"]

DEFAULT_ADDRESS = "https://api.openai.com/v1"
NO_KEY = "no-key"
CONNECT_SECONDS, SILENCE_SECONDS = 10.0, 120.0
RETRIES = 1
MOST_CALLS = 50
ARGUMENT_CHARACTERS = 1_000_000

ChatMessage = dict[str, Any]
"""As the endpoint takes it: `role`, `content`, and for tools what belongs to them."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants to be called; its arguments are JSON, or meant to be."""

    id: str
    name: str
    arguments: str

    def to_openai(self) -> dict[str, Any]:
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(slots=True)
class _Pieces:
    """Tool calls that come in pieces, by their place in the answer."""

    ids: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    arguments: dict[int, str] = field(default_factory=dict)
    size: int = 0

    def add(self, piece: Any) -> None:  # noqa: ANN401 - whatever the endpoint sent
        """A piece without a place belongs to the last call, unless it has a new id."""
        place = getattr(piece, "index", None)
        new_id = getattr(piece, "id", None)
        if not isinstance(place, int):
            last = max(self.arguments, default=0)
            place = last + 1 if new_id and self.ids.get(last, new_id) != new_id else last
        if isinstance(new_id, str) and new_id:
            self.ids[place] = new_id
        function = getattr(piece, "function", None)
        name, said = getattr(function, "name", None), getattr(function, "arguments", None)
        if isinstance(name, str) and name:
            self.names[place] = name
        said = said if isinstance(said, str) else ""
        self.size += len(said)
        if self.size <= ARGUMENT_CHARACTERS:
            self.arguments[place] = self.arguments.get(place, "") + said

    def calls(self) -> list[ToolCall]:
        places = [place for place in sorted(self.arguments) if place in self.names][:MOST_CALLS]
        return [
            ToolCall(self.ids.get(place) or f"call_{place}", self.names[place], self.arguments[place] or "{}")
            for place in places
        ]


class Endpoint:
    """One model at one address. The key is kept here and nowhere else."""

    def __init__(self, model: str, base_url: str, key: str, key_name: str, *, is_single: bool = False) -> None:
        self.model = model
        self.base_url = base_url or DEFAULT_ADDRESS
        self.key_name = key_name
        self.is_single = is_single
        self._key = key
        self._client: Any = None

    @property
    def secret(self) -> str:
        """For those who must leave it out of what they write."""
        return self._key

    def stream(self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]] = ()) -> Iterator[str | ToolCall]:
        """Also what says nothing, as "", so that whoever reads can stop in time.

        ModelUnavailableError says in one sentence what is wrong and what to do; what came before it counts.
        """
        pieces = _Pieces()
        has_begun = has_ended = False
        try:
            with self._opened(messages, tools) as chunks:
                for chunk in chunks:
                    for said, ended in read(chunk, pieces):
                        has_ended = has_ended or ended
                        has_begun = has_begun or bool(said)
                        yield said
        except Exception as error:  # the library's errors, and those of what is below it
            raise model_error(error, self, has_begun=has_begun) from error
        if not has_ended:
            raise broken_off("it ended too early", self)
        yield from pieces.calls()

    def _opened(self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]]) -> Any:  # noqa: ANN401
        given: dict[str, Any] = {"tools": list(tools)} if tools else {}
        return self._connected().chat.completions.create(
            model=self.model, messages=[sendable(message) for message in messages], stream=True, **given
        )

    def _connected(self) -> Any:  # noqa: ANN401 - the library's client
        if self._client is None:
            import openai

            timeout = openai.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
            self._client = openai.OpenAI(
                api_key=self._key or NO_KEY, base_url=self.base_url, timeout=timeout, max_retries=RETRIES
            )
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def sendable(message: ChatMessage) -> ChatMessage:
    """What was typed or read may hold bytes that are no text, and those cannot be sent as they are."""
    return {**message, "content": message["content"].encode("utf-8", "backslashreplace").decode()}


def read(chunk: Any, pieces: _Pieces) -> Iterator[tuple[str, bool]]:  # noqa: ANN401 - whatever the endpoint sent
    """Texts, each with whether the answer ends with it; endpoints leave out what they like."""
    for choice in getattr(chunk, "choices", None) or ():
        delta = getattr(choice, "delta", None)
        for piece in getattr(delta, "tool_calls", None) or ():
            pieces.add(piece)
        said = getattr(delta, "content", None)
        yield (said if isinstance(said, str) else ""), bool(getattr(choice, "finish_reason", None))
