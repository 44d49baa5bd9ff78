# /// script
# requires-python = ">=3.11"
# dependencies = ["openpyxl>=3.1,<4"]
# ///
"""Turns a CSV file, or CSV on stdin, into workbook.xlsx in the work folder."""

import csv
import os
import sys
from pathlib import Path

from openpyxl import Workbook
from openpyxl.styles import Font

rows = list(csv.reader(open(sys.argv[1], newline="", encoding="utf-8") if len(sys.argv) > 1 else sys.stdin))
book = Workbook()
sheet = book.active
for row in rows:
    sheet.append(row)
for cell in sheet[1]:
    cell.font = Font(bold=True)
sheet.freeze_panes = "A2"
target = Path(os.environ.get("SKILL_WORK_DIR", ".")) / "workbook.xlsx"
book.save(target)
print(f"{len(rows)} rows in {target.name}")
