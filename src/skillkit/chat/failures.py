"""What a client library raised -> one sentence for the person: what is wrong, and what to do."""

from __future__ import annotations

from typing import Protocol

from skillkit.core.exceptions import ModelUnavailableError
from skillkit.core.record.redaction import MASK, redacted_text
from skillkit.present.terminal import cut, visible

__all__ = ["Asked", "broken_off", "model_error"]

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


class Asked(Protocol):
    """Of an endpoint, what its errors are told with."""

    base_url: str
    model: str
    key_name: str
    is_single: bool

    @property
    def secret(self) -> str: ...


def model_error(error: Exception, endpoint: Asked, *, has_begun: bool) -> ModelUnavailableError:
    """Never with the key in it, nor with anything that a terminal would obey."""
    import openai

    if isinstance(error, ValueError):
        return broken_off("a piece of it cannot be read", endpoint)
    if has_begun:
        return broken_off(said_by(error.__cause__ or error, endpoint), endpoint)
    if isinstance(error, openai.APIStatusError):
        return status_error(error.status_code, said_by(error, endpoint), endpoint)
    if isinstance(error, openai.APITimeoutError):
        told = f"gives no answer. It may be busy: wait a little, then {again(endpoint)}"
    elif isinstance(error, openai.APIConnectionError):
        why = said_by(error.__cause__ or error, endpoint)
        told = f"cannot be reached ({why}). Check the address (--base-url) and that it runs, then {again(endpoint)}"
    else:
        why = f"{type(error).__name__}: {said_by(error, endpoint)}"
        told = f"does not answer as it should ({why}). Check that it speaks OpenAI's protocol, then {again(endpoint)}"
    return ModelUnavailableError(f"{endpoint.base_url} {told}.", is_about_tools=names_tools(told))


def broken_off(why: str, endpoint: Asked) -> ModelUnavailableError:
    rest = "kept; /retry asks again" if not endpoint.is_single else f"not all; {again(endpoint)}"
    return ModelUnavailableError(f"The answer from {endpoint.base_url} broke off: {why}. What came so far is {rest}.")


def again(endpoint: Asked) -> str:
    """What a person does to ask again; after a single question there is no line to type /retry into."""
    return "run the command again" if endpoint.is_single else "/retry"


def status_error(status: int, said: str, endpoint: Asked) -> ModelUnavailableError:
    remedy = REMEDIES.get(status, OTHER_REMEDY)
    told = remedy.format(key_name=endpoint.key_name, model=endpoint.model, again=again(endpoint))
    return ModelUnavailableError(
        f"{endpoint.base_url} answered {status}: {said.rstrip('.')}. {told}",
        is_about_tools=status in TOOL_STATUSES and names_tools(said),
    )


def names_tools(said: str) -> bool:
    return any(word in said.lower() for word in TOOL_WORDS)


def said_by(error: BaseException, endpoint: Asked) -> str:
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    said = message if isinstance(message, str) and message else str(error)
    if endpoint.secret:
        said = said.replace(endpoint.secret, MASK)
    return cut(visible(redacted_text(said)), SAID_COLUMNS)
