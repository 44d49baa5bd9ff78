"""The user's `config.toml` and a project's `skillkit.toml` -> policy and settings; a project may only tighten."""

from __future__ import annotations

from skillkit.config.files import (
    Place,
    current_folder,
    project_file,
    searched_folders,
    user_file_place,
)
from skillkit.config.settings import Origin, Settings, load_settings

__all__ = [
    "Origin",
    "Place",
    "Settings",
    "current_folder",
    "load_settings",
    "project_file",
    "searched_folders",
    "user_file_place",
]
