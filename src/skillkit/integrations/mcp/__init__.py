"""Skills over the Model Context Protocol: tools, resources, prompts and approval, on stdio or HTTP."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.text import map_texts

__all__ = ["in_unicode", "require_mcp"]


def require_mcp() -> None:
    """One clear sentence where the extra is missing."""
    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise ConfigurationError(
            "The MCP server needs the package 'mcp', version 2. Install it: pip install 'skillkit-runtime[mcp]'."
        )


def in_unicode(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can say, as what it was
    """A half of a character, as in a file name that is not UTF-8, would end the whole connection; here it is `?`."""
    return map_texts(lambda text: text.encode("utf-8", "replace").decode("utf-8"), value)
