"""What a skill's instructions say about its scripts: which of them they write as a command, and how."""

from __future__ import annotations

from skillkit.core.find.references.reader import References, ScriptReference, references_in

__all__ = ["References", "ScriptReference", "references_in"]
