"""A manager's skills -> what a LangChain agent uses: tools, and middleware for their names and their catalog."""

from __future__ import annotations

from importlib import import_module

from skillkit.integrations.langchain.installed import require_langchain

require_langchain()

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.integrations.langchain.catalog import SkillCatalog
    from skillkit.integrations.langchain.outcomes import ScriptFailedError, ScriptNotRunError
    from skillkit.integrations.langchain.tool_names import SkillToolNames
    from skillkit.integrations.langchain.tools import create_langchain_tools, create_script_tools

__all__ = [
    "ScriptFailedError",
    "ScriptNotRunError",
    "SkillCatalog",
    "SkillToolNames",
    "create_langchain_tools",
    "create_script_tools",
]

_HOMES = {
    "ScriptFailedError": "outcomes",
    "ScriptNotRunError": "outcomes",
    "SkillCatalog": "catalog",
    "SkillToolNames": "tool_names",
    "create_langchain_tools": "tools",
    "create_script_tools": "tools",
}


def __getattr__(name: str) -> object:
    """Middleware needs much more of LangChain than tools do, so each is imported when it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
