"""The head of a script tells what it does; shebangs, licences, directives and rules do not."""

from __future__ import annotations

import time

import pytest

from skillkit.core.models.detect.descriptions import DESCRIPTION_LIMIT, description_of
from skillkit.core.values.skills import SCRIPT_TYPES

APACHE = """\
# Copyright 2024 Example LLC
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
"""

MIT = """\
/*
 * MIT License
 *
 * Copyright (c) 2024 Somebody
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy
 * of this software and associated documentation files, to deal in the Software.
 *
 * The above copyright notice and this permission notice shall be included.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND.
 */
"""

GPL = """\
# This file is part of Tool.
#
# Tool is free software: you can redistribute it and/or modify it under the
# terms of the GNU General Public License as published by the FSF.
#
# It is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY.
#
# You should have received a copy of the GNU General Public License.
"""


@pytest.mark.parametrize(
    ("text", "description"),
    [
        pytest.param('"""Extract tables."""\nimport sys\n', "Extract tables.", id="double quotes"),
        pytest.param("'''Extract tables.'''\n", "Extract tables.", id="single triple quotes"),
        pytest.param('"Extract tables."\n', "Extract tables.", id="one double quote"),
        pytest.param("'Extract tables.'  # done\n", "Extract tables.", id="one single quote and a comment"),
        pytest.param('r"""Match \\d+ rows."""\n', "Match \\d+ rows.", id="raw"),
        pytest.param('R"""Match \\d+ rows."""\n', "Match \\d+ rows.", id="RAW"),
        pytest.param('u"""Extract tables."""\n', "Extract tables.", id="unicode prefix"),
        pytest.param('b"""Extract tables."""\n', "", id="bytes are no docstring"),
        pytest.param('f"""Extract tables."""\n', "", id="f-strings are no docstring"),
        pytest.param('"""A \\"quoted\\""" word."""\n', 'A "quoted""" word.', id="escaped quotes"),
        pytest.param('"""\\\nExtract tables.\n"""\n', "Extract tables.", id="escaped line end"),
        pytest.param('"it\\\\"\nx = 1\n', "it\\", id="escaped backslash before the quote"),
        pytest.param('"never closed\nx = 1\n', "", id="an open string is no docstring"),
        pytest.param('"a".join(x)\n', "", id="an expression is no docstring"),
        pytest.param('"""Extract tables\n' + "and more\n", "Extract tables and more", id="cut by the head"),
        pytest.param('# Comment.\n\n"""Docstring."""\n', "Docstring.", id="docstring before comment"),
        pytest.param("# Comment\n# goes on.\nimport sys\n", "Comment goes on.", id="comment block"),
        pytest.param("# First.\n\n# Second.\n", "First.", id="a blank line ends the block"),
        pytest.param("# First.\n#\n# Second.\n", "First. Second.", id="a bare marker does not"),
        pytest.param("import sys\n# Later.\n", "", id="a comment behind code"),
        pytest.param('import sys\n"""Later."""\n', "", id="a string behind code"),
        pytest.param('""""""\n# Later.\n', "Later.", id="empty docstring"),
        pytest.param("#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n# Extract.\n", "Extract.", id="coding"),
        pytest.param("# pylint: disable=all\n# type: ignore\n# Extract.\n", "Extract.", id="linters"),
        pytest.param("# vim: set ts=4:\n# Extract.\n", "Extract.", id="mode line"),
        pytest.param(
            '#!/usr/bin/env -S uv run --script\n# /// script\n# dependencies = ["x"]\n# ///\n"""Fetch."""\n',
            "Fetch.",
            id="inline metadata before a docstring",
        ),
        pytest.param(
            '# /// script\n# dependencies = [\n#   "requests",\n# ]\n# ///\n# Fetch.\n',
            "Fetch.",
            id="metadata",
        ),
        pytest.param("# Fetch.\n# /// script\n# x = 1\n# ///\n", "Fetch.", id="metadata after a comment"),
        pytest.param(APACHE + '\n"""Extract."""\n', "Extract.", id="Apache, then docstring"),
        pytest.param(APACHE + "\n# Extract.\n", "Extract.", id="Apache, then comment"),
        pytest.param(APACHE + "#\n# Extract.\n", "Extract.", id="Apache and comment in one block"),
        pytest.param(APACHE, "", id="Apache only"),
        pytest.param('"""Copyright 2024 Me"""\n\n"""Extract."""\n', "Extract.", id="notice, then docstring"),
        pytest.param("# This file is dual licensed under MIT and BSD.\n\n# Extract.\n", "Extract.", id="dual"),
        pytest.param('"""Extract.\n\n:copyright: Me\n:license: BSD\n"""\n', "Extract.", id="fields"),
        pytest.param("# ### BEGIN LICENSE BLOCK ###\n# Words.\n\n# Extract.\n", "Extract.", id="licence block"),
        pytest.param("# Author: Me\n# Extract.\n", "Extract.", id="author"),
        pytest.param("# SPDX-License-Identifier: MIT\n# Extract.\n", "Extract.", id="SPDX line"),
        pytest.param('"""Extract.\n\nCopyright (c) 2024 Me\nLicense: MIT\n"""\n', "Extract.", id="notice below"),
        pytest.param('"""Copyright 2024 Me. All rights reserved."""\n# Extract.\n', "Extract.", id="notice only"),
        pytest.param("# Copyright checker for source files.\n", "Copyright checker for source files.", id="topic"),
        pytest.param('"""Check licence headers."""\n', "Check licence headers.", id="about licences"),
        pytest.param("", "", id="nothing"),
        pytest.param("\n\n\n", "", id="blank"),
    ],
)
def test_python_prefers_the_docstring_to_a_comment(text: str, description: str) -> None:
    assert description_of(text, "python") == description


@pytest.mark.parametrize(
    ("text", "description"),
    [
        pytest.param("#!/bin/bash\n# Deploy it.\nset -e\n", "Deploy it.", id="after the shebang"),
        pytest.param("#!/bin/bash\n\n# Deploy it.\n", "Deploy it.", id="after a blank line"),
        pytest.param("#!/bin/bash\nset -euo pipefail\n\n# Deploy it.\n\ncd x\n", "Deploy it.", id="after set"),
        pytest.param("#!/bin/bash\nset -e\n# Colours\nRED=1\n", "", id="glued to code after set"),
        pytest.param("#!/bin/bash\nset -e\n# Deploy it.\n", "Deploy it.", id="nothing after it"),
        pytest.param("#!/bin/bash\ncd x\n# Deploy it.\n", "", id="behind code"),
        pytest.param("# shellcheck disable=SC2086\n# Deploy it.\n", "Deploy it.", id="directive"),
        pytest.param("# =====\n# Deploy it.\n# =====\n", "Deploy it.", id="rules"),
        pytest.param("#########\n# Deploy it #\n#########\n", "Deploy it", id="box"),
        pytest.param("# ---- Deploy it ----\n", "Deploy it", id="title between rules"),
        pytest.param("# -h, --help shows help\n", "-h, --help shows help", id="options keep their dashes"),
        pytest.param("#Deploy it.\n", "Deploy it.", id="no space"),
        pytest.param("  # Deploy it.\n", "Deploy it.", id="indented"),
        pytest.param("# Déployer le système — 部署\n", "Déployer le système — 部署", id="unicode"),
        pytest.param(GPL + "\n# Deploy it.\n", "Deploy it.", id="GPL"),
        pytest.param("#!/bin/bash\r\n# Deploy\r\n# it.\r\n", "Deploy it.", id="CRLF"),
        pytest.param("# Deploy\r# it.\r", "Deploy it.", id="CR"),
        pytest.param("#!/bin/bash", "", id="shebang only"),
        pytest.param("#! nix-shell -i bash\n# Deploy it.\n", "Deploy it.", id="second shebang"),
    ],
)
def test_shell_describes_itself_in_its_first_comment(text: str, description: str) -> None:
    assert description_of(text, "shell") == description


@pytest.mark.parametrize("language", ["javascript", "typescript"])
@pytest.mark.parametrize(
    ("text", "description"),
    [
        pytest.param("// Render\n// a page.\nconst x = 1\n", "Render a page.", id="lines"),
        pytest.param("/* Render a page. */\n", "Render a page.", id="block"),
        pytest.param("/**\n * Render\n * a page.\n *\n * @param {x} y\n * more\n */\n", "Render a page.", id="JSDoc"),
        pytest.param("/**\n * @fileoverview Render a page.\n * @author Me\n */\n", "Render a page.", id="file tag"),
        pytest.param("/**\n * @module x\n * @description Render it.\n */\n", "Render it.", id="description tag"),
        pytest.param("'use strict';\n\n// Render a page.\n\nx()\n", "Render a page.", id="after use strict"),
        pytest.param('"use strict"\n/* About x. */\nx()\n', "", id="glued to code after use strict"),
        pytest.param("/* eslint-disable */\n// Render a page.\n", "Render a page.", id="linter"),
        pytest.param("// @ts-check\n// Render a page.\n", "Render a page.", id="type check"),
        pytest.param("/** @license MIT */\n/** Render a page. */\n", "Render a page.", id="licence tag"),
        pytest.param(MIT + "// Render a page.\n", "Render a page.", id="MIT"),
        pytest.param("/* Render a page. */ x()\n", "Render a page.", id="code on the same line"),
        pytest.param("/* Render a page.\n", "Render a page.", id="never closed"),
        pytest.param("/***********\n * Render it *\n ***********/\n", "Render it", id="box"),
        pytest.param("import x\n// Render a page.\n", "", id="behind code"),
    ],
)
def test_javascript_and_typescript_share_their_comments(text: str, description: str, language: str) -> None:
    assert description_of(text, language) == description


POD = """\
=head1 NAME

sorter - sorts B<files>

=head1 SYNOPSIS

sorter x

=head1 DESCRIPTION

Fast.

=cut
"""

HELP = """\
<#
.SYNOPSIS
    Sort it.
.DESCRIPTION
    With .NET.
.PARAMETER Path
    A file.
#>
param($Path)
"""


@pytest.mark.parametrize(
    ("language", "text", "description"),
    [
        pytest.param("ruby", "# frozen_string_literal: true\n\n# Sort it.\n", "Sort it.", id="ruby lines"),
        pytest.param("ruby", "=begin\nSort\nit.\n=end\nputs 1\n", "Sort it.", id="ruby block"),
        pytest.param("perl", "#!/usr/bin/perl\n# Sort it.\nuse strict;\n", "Sort it.", id="perl lines"),
        pytest.param("perl", "use strict;\nuse warnings;\n\n# Sort it.\n\nrun();\n", "Sort it.", id="after use"),
        pytest.param("perl", POD, "sorter - sorts files Fast.", id="pod sections"),
        pytest.param("perl", "run();\n\n=head1 NAME\n\nsorter\n\n=cut\n\nmore();\n", "sorter", id="pod amid code"),
        pytest.param("perl", "=pod\n\nSorts files.\n\n=cut\nrun();\n", "Sorts files.", id="pod without sections"),
        pytest.param("perl", "run();\n\n=head1 NAME\n\nsorter - sorts\n", "sorter - sorts", id="pod at the end"),
        pytest.param("powershell", "# Sort it.\n", "Sort it.", id="powershell lines"),
        pytest.param("powershell", "#Requires -Version 7\n<# Sort it. #>\n", "Sort it.", id="powershell block"),
        pytest.param("powershell", HELP, "Sort it. With .NET.", id="powershell help"),
        pytest.param("powershell", "# .Synopsis\n# Sort it.\n# .Notes\n# Old.\n", "Sort it.", id="help in lines"),
        pytest.param("batch", "@echo off\nREM Sort\nrem it.\n\nsort x\n", "Sort it.", id="batch REM"),
        pytest.param("batch", "@echo off\r\n:: Sort it.\r\n\r\nsort x\r\n", "Sort it.", id="batch colons"),
        pytest.param("batch", "remove x\n", "", id="a word that begins with rem"),
    ],
)
def test_other_languages_describe_themselves_their_way(language: str, text: str, description: str) -> None:
    assert description_of(text, language) == description


def test_a_long_text_is_cut_after_the_last_paragraph_that_fits() -> None:
    first, second = "word " * 60, "more " * 60
    assert description_of(f'"""{first}\n\n{second}\n"""\n', "python") == first.strip()


def test_a_short_title_is_followed_by_the_words_that_fit() -> None:
    text = description_of(f'"""Title.\n\n{"word " * 200}\n"""\n', "python")
    assert text == ("Title. " + "word " * 200)[:DESCRIPTION_LIMIT].rpartition(" ")[0]


def test_a_text_without_spaces_is_cut_at_the_limit() -> None:
    assert description_of("# " + "部" * 900 + "\n", "shell") == "部" * DESCRIPTION_LIMIT


def test_a_text_of_exactly_the_limit_is_kept_whole() -> None:
    whole = "word " * 99 + "words"
    assert len(whole) == DESCRIPTION_LIMIT
    assert description_of(f"# {whole}\n", "shell") == whole


def test_spaces_tabs_and_line_ends_become_one_space() -> None:
    assert description_of('"""Extract\n    all\t\ttables \u00a0 now."""\n', "python") == "Extract all tables now."


HOSTILE = {
    "hashes": "#" * 8192,
    "hash lines": "#\n" * 4096,
    "hash blocks": "#\n\n" * 2730,
    "double quotes": '"' * 8192,
    "escaped quotes": '"""' + '\\"' * 4000,
    "escaped triples": '"""' + '\\"""' * 2000,
    "backslashes": '"""' + "\\" * 8189,
    "empty docstrings": '""\n' * 2700,
    "directives": "#noqa\n\n" * 1170,
    "spaces": " " * 8192,
    "comment of spaces": "# x" + " " * 8000 + "x",
    "copyright and spaces": "# copyright" + " " * 8000 + "x",
    "copyright lines": "# copyright x\n" * 580,
    "stars": "/*" + "*" * 8190,
    "star lines": "/*\n" + "*\n" * 4090,
    "openings": "/*" * 4096,
    "slashes": "/" * 8192,
    "metadata openings": "# /// script\n" * 630,
    "rules": "# " + "=" * 8000 + "x" + "=" * 100,
    "formats": "=head1 NAME\n\n" + "B<" * 4000,
    "headings": "=head1 \n" * 1000,
    "help": "<#" + ".SYNOPSIS " * 800,
    "licence words": "# " + "the licen " * 800,
    "one word": "# licen this " + "x" * 8000,
    "addresses": "# licen " + "http://" * 1100,
    "prologue": "set -e\n" * 1100,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_heads_take_no_quadratic_time(name: str) -> None:
    started = time.process_time()
    for language in SCRIPT_TYPES:
        assert len(description_of(HOSTILE[name], language)) <= DESCRIPTION_LIMIT
    assert time.process_time() - started < 1
