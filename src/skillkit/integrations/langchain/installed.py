"""Whether LangChain is there -> nothing, or one sentence that says how to get it."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["require_langchain"]

PACKAGES = ("langchain_core", "langchain", "langgraph")


def require_langchain() -> None:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"skillkit's LangChain tools need {', '.join(missing)}, which is not installed. "
            'Install it with: pip install "skillkit-runtime[langchain]"',
            name=missing[0],
        )
