"""The reference of reading says where skillkit looks, as the table of hosts does."""

from __future__ import annotations

import re
from pathlib import Path

from skillkit.core.find.walk import DEPTH_LIMIT, FOLDER_LIMIT
from skillkit.core.paths.hosts import HOSTS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "reading.md").read_text(encoding="utf-8")


def test_the_table_has_every_folder_of_every_host() -> None:
    section = PAGE.partition("| host | project |")[2].partition("\n\n")[0]
    rows = [[re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:5]] for line in section.splitlines()[2:]]
    written = {host[0] if host else "": folders for host, *folders in rows}
    expected: dict[str, list[list[str]]] = {}
    for host in HOSTS:
        folders = expected.setdefault(host.name, [[], [], []])
        users = [f"~/{folder}" for folder in host.user]
        for place, named in zip(folders, (host.project, users, host.system), strict=True):
            place.extend(named)
    assert written == expected


def test_the_limits_are_as_written() -> None:
    assert f"{DEPTH_LIMIT} levels deep and visits at most {FOLDER_LIMIT:,} folders" in PAGE
