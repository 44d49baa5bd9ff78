"""A run's own temporary folder -> variables that keep interpreters, git and npm from start-up files in a kept home.

An earlier run of the same skill can have put anything there. Where a program wants to write such a file, the variable
names one in the temporary folder, which is new for each run: it works as long as the run does.
"""

from __future__ import annotations

import os

__all__ = ["home_variables"]

# Bash, told by a socket that a person came over the network, reads .bashrc; not as the second shell.
FIXED = {"SHLVL": "1"} | dict.fromkeys(
    "PIP_CONFIG_FILE ZDOTDIR IRBRC PRYRC R_PROFILE_USER R_ENVIRON_USER PSQLRC".split(), os.devnull
)
IN_TEMPORARY_FOLDER = {
    "PYTHONUSERBASE": ".python",
    "GIT_CONFIG_GLOBAL": ".gitconfig",
    "npm_config_userconfig": ".npmrc",
}


def home_variables(temporary: str) -> dict[str, str]:
    """What each is set to unless policy passes another value."""
    return FIXED | {name: os.path.join(temporary, file) for name, file in IN_TEMPORARY_FOLDER.items()}
