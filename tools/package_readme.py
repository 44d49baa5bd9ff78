"""README.md -> what a package index shows: nothing in it leads to files that an index does not have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

WHERE = "\nThe paths named here are in the source distribution and in the project's repository.\n"
HERE = r"\((?!https?:|#)([^)\s]+)\)"
IMAGE = re.compile(rf"^!\[[^\]]*\]{HERE}\n\n?", re.MULTILINE)
LINK = re.compile(rf"\[([^\]]+)\]{HERE}")
LINK_IN_BRACKETS = re.compile(rf"\({LINK.pattern}\)")


def self_contained(text: str) -> str:
    """A link to a file becomes the file's path; an image of a file is left out."""
    text = LINK_IN_BRACKETS.sub(r"(\1: `\2`)", IMAGE.sub("", text))
    return LINK.sub(r"\1 (`\2`)", text) + WHERE


class PackageReadme(MetadataHookInterface):
    """What the build calls."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": self_contained(text)}
