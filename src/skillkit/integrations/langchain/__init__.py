"""A manager's skills -> what a LangChain agent uses: tools, and middleware for their names and their catalog."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.integrations.langchain.calls import ScriptFailedError, ScriptNotRunError
    from skillkit.integrations.langchain.middleware import SkillCatalog, SkillToolNames
    from skillkit.integrations.langchain.tools import create_langchain_tools, create_script_tools

__all__ = [
    "ScriptFailedError",
    "ScriptNotRunError",
    "SkillCatalog",
    "SkillToolNames",
    "create_langchain_tools",
    "create_script_tools",
]

_MISSING = [name for name in ("langchain_core", "langchain", "langgraph") if find_spec(name) is None]
if _MISSING:
    raise ModuleNotFoundError(
        f"skillkit's LangChain tools need {', '.join(_MISSING)}, which is not installed. "
        'Install it with: pip install "skillkit-runtime[langchain]"',
        name=_MISSING[0],
    )


def __getattr__(name: str) -> object:
    """Middleware needs much more of LangChain than tools do, so each is imported when it is used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = {"SkillCatalog": "middleware", "SkillToolNames": "middleware"}
    home = homes.get(name, "calls" if name.endswith("Error") else "tools")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
