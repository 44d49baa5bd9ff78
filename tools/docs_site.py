"""A hook of mkdocs: files of the repository that the docs link to -> pages of the site, with the links set right."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Read in the repository as well, so they stay where they are.
BESIDE_THE_DOCS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/results.md",
    "bench/real-skills.md",
    "bench/peers/results.md",
)
LINK = re.compile(r"(?<!!)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
FETCHED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"?(?:https?:)?//[^>]*>")


def on_files(files: Files, config: Any, **_: Any) -> Files:  # noqa: ANN401 - mkdocs' own type needs mkdocs
    for path in BESIDE_THE_DOCS:
        if (ROOT / path).is_file():
            files.append(File.generated(config, f"project/{path}", abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401
    """A link that is right in the repository is right on the site."""
    here = place_in_repository(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[1]))
        place = place_on_site(target)
        if place is None:
            return link[0]
        relative = posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".")
        return f"]({relative}{link[2] or ''})"

    return LINK.sub(moved, markdown)


def place_in_repository(uri: str) -> str:
    return uri.removeprefix("project/") if uri.startswith("project/") else f"docs/{uri}"


def place_on_site(path: str) -> str | None:
    if path in BESIDE_THE_DOCS:
        return f"project/{path}"
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def on_post_page(output: str, page: Any, **_: Any) -> str:  # noqa: ANN401
    """A reader's browser asks nobody else for anything."""
    if fetched := FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri} fetches from elsewhere: {fetched[0]}. Put the file into docs/assets.")
    return output
