"""How a tool failed -> an error that says why, with the tool's own last words."""

from __future__ import annotations

from skillkit.core.run.hosts.proxy import NOT_LISTED
from skillkit.core.values.text import on_one_line
from skillkit.packages.tools import Said
from skillkit.packages.values import PackagesError

__all__ = ["failure_of"]

WORDS = 1_200


def failure_of(tool: str, said: Said, what: str) -> PackagesError:
    if said.timed_out:
        return PackagesError(f"{what}: {tool} was stopped, because the index takes too long. Try again later.")
    unreached = sorted({each.refused for each in said.hosts if each.refused and not each.refused.endswith(NOT_LISTED)})
    if unreached:
        return PackagesError(f"{what}: {'; '.join(unreached[:3])}. Check the network, and the index that you set.")
    refused = sorted({each.host for each in said.hosts if each.refused})
    if refused:
        return PackagesError(
            f"{what}: {tool} was sent to {', '.join(refused[:5])}, which the pages of the index do not name. "
            "Check the index that you set."
        )
    words = " ".join(on_one_line(line) for line in said.stderr.splitlines() if line.strip())
    hint = ""
    if "no usable wheels" in words or "no wheels" in words or "building source" in words:
        hint = " Only wheels are installed, since a source package runs its own code when it is built."
    return PackagesError(f"{what}. {tool} says: {words[-WORDS:] or 'nothing'}{hint}")
