# /// script
# requires-python = ">=3.11"
# dependencies = ["pypdf>=4"]
# ///
"""Tells how many pages a PDF has, and its title."""

import sys

from pypdf import PdfReader

if len(sys.argv) < 2:
    sys.exit("usage: pages.py FILE.pdf")
reader = PdfReader(sys.argv[1])
print(f"{len(reader.pages)} pages, title: {reader.metadata.title if reader.metadata else None}")
