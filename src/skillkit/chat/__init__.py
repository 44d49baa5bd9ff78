"""A terminal chat with a model on any OpenAI-compatible endpoint, whose answers may run scripts of skills."""

from __future__ import annotations

from importlib.util import find_spec

from skillkit.core.exceptions import ConfigurationError

__all__ = ["require_chat"]


def require_chat() -> None:
    """One clear sentence where the extra is missing."""
    if find_spec("openai") is None:
        raise ConfigurationError(
            "The chat needs the package 'openai'. Install it: pip install 'skillkit-runtime[chat]'."
        )
