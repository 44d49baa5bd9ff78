"""Skills over the Model Context Protocol: tools, resources, prompts and approval, on stdio or HTTP."""

from __future__ import annotations

from importlib.util import find_spec

from skillkit.core.exceptions import ConfigurationError

__all__ = ["require_mcp"]


def require_mcp() -> None:
    """One clear sentence where the extra is missing."""
    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise ConfigurationError(
            "The MCP server needs the package 'mcp', version 2. Install it: pip install 'skillkit-runtime[mcp]'."
        )
