"""A user and a project with configuration files: real folders, nothing more."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

from skillkit import ConfigurationError
from skillkit.config import Settings, load_settings

__all__ = ["Machine"]


@dataclass(frozen=True)
class Machine:
    """One user's file and one project below a folder of its own; files are made so that they may be believed."""

    folder: Path

    @property
    def user_file(self) -> Path:
        return self.folder / "own" / "config.toml"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def project_file(self) -> Path:
        return self.project / "skillkit.toml"

    def user(self, text: str) -> Path:
        return placed(self.user_file, text)

    def repository(self, text: str) -> Path:
        return placed(self.project_file, text)

    def trusting(self, text: str = "") -> Path:
        return self.user(f"{text}\n[projects]\ntrusted = ['{self.project}']\n")

    def settings(self) -> Settings:
        self.project.mkdir(exist_ok=True)
        user_file = self.user_file if self.user_file.exists() else None
        return load_settings(self.project, environ={}, user_file=user_file)

    def refusal(self) -> str:
        """What the error says; that there is none is a failure."""
        try:
            settings = self.settings()
        except ConfigurationError as error:
            return str(error)
        raise AssertionError(f"accepted: {settings.named}")


def placed(file: Path, text: str) -> Path:
    file.parent.mkdir(mode=0o755, exist_ok=True)
    file.parent.chmod(0o755)
    file.write_bytes(textwrap.dedent(text).encode())
    file.chmod(0o644)
    return file
