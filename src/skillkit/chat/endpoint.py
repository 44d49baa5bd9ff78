"""A conversation -> a model's answer from an OpenAI-compatible endpoint: text as it comes, then its tool calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillkit.core.exceptions import ModelUnavailableError
from skillkit.core.record.redaction import MASK, redacted_text
from skillkit.core.values.text import storable, visible
from skillkit.present.terminal import cut

__all__ = ["DEFAULT_ADDRESS", "ChatMessage", "Endpoint", "ToolCall"]

DEFAULT_ADDRESS = "https://api.openai.com/v1"
NO_KEY = "no-key"
CONNECT_SECONDS, SILENCE_SECONDS = 10.0, 120.0
RETRIES = 1
MOST_CALLS = 50
ARGUMENT_CHARACTERS = 1_000_000
SAID_COLUMNS = 200
TOOL_STATUSES = (400, 404, 405, 422, 500, 501)
TOOL_WORDS = ("tool", "function call", "function_call", "functions")
REMEDIES = {
    400: "Correct what it names, or ask in another way.",
    401: "It does not accept the key in ${key_name}. Set a valid one and start the chat again.",
    403: "The key in ${key_name} may not use {model!r}. Use another key or another model.",
    404: "Check the model's name ({model!r}, --model) and the address (--base-url; most end in /v1).",
    413: "The conversation is too long for it. Start a new chat.",
    429: "It is too busy, or your quota is used up. Wait a little, then {again}.",
}
OTHER_REMEDY = "The fault is on its side: wait a little, then {again}."

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


class _CallPieces:
    """Tool calls that come in pieces, by their place in the answer; endpoints leave out what they like."""

    def __init__(self) -> None:
        self._calls: dict[int, dict[str, str]] = {}
        self._size = 0

    def add(self, piece: Any) -> None:  # noqa: ANN401 - whatever the endpoint sent
        """A piece without a place belongs to the last call, unless it has a new id."""
        function = getattr(piece, "function", None)
        given = {
            "id": getattr(piece, "id", None),
            "name": getattr(function, "name", None),
            "arguments": getattr(function, "arguments", None),
        }
        told = {key: value for key, value in given.items() if isinstance(value, str) and value}
        place = getattr(piece, "index", None)
        if not isinstance(place, int):
            last = max(self._calls, default=0)
            is_new = "id" in told and self._calls.get(last, told).get("id", told["id"]) != told["id"]
            place = last + 1 if is_new else last
        said = told.pop("arguments", "")
        self._size += len(said)
        if self._size <= ARGUMENT_CHARACTERS:
            call = self._calls.setdefault(place, {"arguments": ""})
            call.update(told)
            call["arguments"] += said

    def calls(self) -> list[ToolCall]:
        named = [(place, call) for place, call in sorted(self._calls.items()) if "name" in call][:MOST_CALLS]
        return [
            ToolCall(call.get("id", f"call_{place}"), call["name"], call["arguments"] or "{}") for place, call in named
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
        pieces = _CallPieces()
        has_begun = has_ended = False
        try:
            with self._open_stream(messages, tools) as chunks:
                for chunk in chunks:
                    for said, ended in _read(chunk, pieces):
                        has_ended = has_ended or ended
                        has_begun = has_begun or bool(said)
                        yield said
        except Exception as error:  # the library's errors, and those of what is below it
            raise _model_error(error, self, has_begun=has_begun) from error
        if not has_ended:
            raise _broken_off("it ended too early", self)
        yield from pieces.calls()

    def _open_stream(self, messages: Sequence[ChatMessage], tools: Sequence[dict[str, Any]]) -> Any:  # noqa: ANN401
        given: dict[str, Any] = {"tools": list(tools)} if tools else {}
        return self._connect().chat.completions.create(
            model=self.model, messages=[_sendable(message) for message in messages], stream=True, **given
        )

    def _connect(self) -> Any:  # noqa: ANN401 - the library's client
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


def _sendable(message: ChatMessage) -> ChatMessage:
    """What was typed or read may hold bytes that are not text, and those cannot be sent as they are."""
    return {**message, "content": storable(message["content"])}


def _read(chunk: Any, pieces: _CallPieces) -> Iterator[tuple[str, bool]]:  # noqa: ANN401 - whatever the endpoint sent
    """Texts, each with whether the answer ends with it; endpoints leave out what they like."""
    for choice in getattr(chunk, "choices", None) or ():
        delta = getattr(choice, "delta", None)
        for piece in getattr(delta, "tool_calls", None) or ():
            pieces.add(piece)
        said = getattr(delta, "content", None)
        yield (said if isinstance(said, str) else ""), bool(getattr(choice, "finish_reason", None))


def _model_error(error: Exception, endpoint: Endpoint, *, has_begun: bool) -> ModelUnavailableError:
    """Never with the key in it, nor with anything that a terminal would obey."""
    import openai

    if isinstance(error, ValueError):
        return _broken_off("a piece of it cannot be read", endpoint)
    if has_begun:
        return _broken_off(_said_by(error.__cause__ or error, endpoint), endpoint)
    if isinstance(error, openai.APIStatusError):
        return _status_error(error.status_code, _said_by(error, endpoint), endpoint)
    if isinstance(error, openai.APITimeoutError):
        told = f"gives no answer. It may be busy: wait a little, then {_again(endpoint)}"
    elif isinstance(error, openai.APIConnectionError):
        why = _said_by(error.__cause__ or error, endpoint)
        told = f"cannot be reached ({why}). Check the address (--base-url) and that it runs, then {_again(endpoint)}"
    else:
        why = f"{type(error).__name__}: {_said_by(error, endpoint)}"
        told = f"does not answer as it should ({why}). Check that it speaks OpenAI's protocol, then {_again(endpoint)}"
    return ModelUnavailableError(f"{endpoint.base_url} {told}.", is_about_tools=_names_tools(told))


def _broken_off(why: str, endpoint: Endpoint) -> ModelUnavailableError:
    rest = "kept; /retry asks again" if not endpoint.is_single else f"not all; {_again(endpoint)}"
    return ModelUnavailableError(f"The answer from {endpoint.base_url} broke off: {why}. What came so far is {rest}.")


def _again(endpoint: Endpoint) -> str:
    """What a person does to ask again; after a single question there is no line to type /retry into."""
    return "run the command again" if endpoint.is_single else "/retry"


def _status_error(status: int, said: str, endpoint: Endpoint) -> ModelUnavailableError:
    remedy = REMEDIES.get(status, OTHER_REMEDY)
    told = remedy.format(key_name=endpoint.key_name, model=endpoint.model, again=_again(endpoint))
    return ModelUnavailableError(
        f"{endpoint.base_url} answered {status}: {said.rstrip('.')}. {told}",
        is_about_tools=status in TOOL_STATUSES and _names_tools(said),
    )


def _names_tools(said: str) -> bool:
    return any(word in said.lower() for word in TOOL_WORDS)


def _said_by(error: BaseException, endpoint: Endpoint) -> str:
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    said = message if isinstance(message, str) and message else str(error)
    if endpoint.secret:
        said = said.replace(endpoint.secret, MASK)
    return cut(visible(redacted_text(said)), SAID_COLUMNS)
