"""Packages that real skills use, from the index that this machine uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillkit.core.manager import SkillManager
from skillkit.packages.index import files_of_package, python_index
from skillkit.packages.prepare import prepare_packages
from skillkit.packages.values import PackagesError
from skillkit.testing import ScriptedApprover, skill_folder

SCRIPT = """\
# /// script
# dependencies = ["pypdf", "openpyxl", "pillow", "pandas"]
# ///
import io, socket
import openpyxl, pandas, pypdf
from PIL import Image
book = openpyxl.Workbook()
book.active.append(["a", 1])
kept = io.BytesIO()
book.save(kept)
frame = pandas.read_excel(io.BytesIO(kept.getvalue()), header=None)
writer = pypdf.PdfWriter()
writer.add_blank_page(10, 10)
written = io.BytesIO()
writer.write(written)
print(frame.iloc[0, 1], len(pypdf.PdfReader(written).pages), Image.new("RGB", (3, 4)).size)
try:
    socket.create_connection(("192.0.2.1", 80), 1)
except OSError:
    print("no network")
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_four_packages_of_real_skills_work_inside_walls_without_a_network(
    manager: SkillManager, tmp_path: Path
) -> None:
    try:
        (tmp_path / "empty").mkdir()
        files_of_package("pypdf", python_index(tmp_path / "empty").addresses)
    except PackagesError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no index is reached: {error}")
    skill_folder(manager.roots[0].path, "office", {"scripts/run.py": SCRIPT})
    prepare_packages(manager, "office", approver=ScriptedApprover("yes_once"), young=True, inferred=True)
    result = manager.execute_skill_script("office", "run", None, 120)
    assert result.stdout == "1 1 (3, 4)\nno network\n", result.stderr
