"""Views -> their addresses, below wherever the page is mounted."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

__all__ = ["Links"]


@dataclass(frozen=True, slots=True)
class Links:
    """`root` is the path that the page is mounted at, empty when it stands alone."""

    root: str

    def to(self, path: str, **query: str | int | None) -> str:
        given = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{quote(self.root)}{path}{f'?{urlencode(given)}' if given else ''}"

    def request(self, request_id: str) -> str:
        return self.to(f"/requests/{quote(request_id, safe='')}")

    def answer(self, request_id: str) -> str:
        return f"{self.request(request_id)}/answer"

    def changes(self, request_id: str) -> str:
        return f"{self.request(request_id)}/changes"

    def source(self, request_id: str, number: int, start: int = 1) -> str:
        return f"{self.request(request_id)}/source/{number}?start={start}"

    def skill(self, name: str) -> str:
        return self.to(f"/skills/{quote(name, safe='')}")
