"""A request that is over -> what became of it, for who comes too late or looks back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from skillkit.core.decide.requests import PastRequest
from skillkit.web.frame import framed, links_of
from skillkit.web.markup import Child, tag
from skillkit.web.shown import facts, moment

__all__ = ["OUTCOMES", "answer_words", "closed_page"]

OUTCOMES = {
    "expired": "Nobody answered in time, so nothing was approved.",
    "withdrawn": "Whoever asked went on without an answer, so nothing was approved.",
    "abandoned": "Whoever asked is gone, so nothing was approved.",
}
ANSWERED_BEFORE, GONE = 409, 410


def closed_page(request: Request, past: PastRequest, *, is_answering: bool = False) -> Response:
    """`is_answering` says that somebody tried to answer it once more."""
    links, answer = links_of(request), past.answer
    status = (ANSWERED_BEFORE if is_answering else 200) if answer is not None else GONE
    heading, sentence = words_for(past, is_answering=is_answering)
    rows: list[tuple[str, Child]] = [("Question", past.request.title), ("Asked", moment(past.request.created_at))]
    if answer is not None:
        rows += [("Answer", tag("strong", answer_words(past))), ("Given through", tag("code", answer.channel)),
                 ("Answered", moment(answer.answered_at))]  # fmt: skip
    body = tag(
        "section",
        tag("p", str(status), class_="status-code") if status != 200 else None,  # noqa: PLR2004 - it is well
        tag("h1", heading),
        tag("p", sentence),
        facts(rows),
        tag("p", tag("a", "All pending requests", href=links.to("/"), class_="button")),
        class_="card closed",
    )
    return framed(request, heading, body, current="/", status=status)


def words_for(past: PastRequest, *, is_answering: bool) -> tuple[str, str]:
    if past.answer is None:
        heading = "This request has expired" if past.outcome == "expired" else "This request is over"
        return heading, OUTCOMES.get(past.outcome, past.outcome)
    said = f"“{answer_words(past)}” was the answer, given through {past.answer.channel}."
    if is_answering:
        return "Already answered", f"{said} The first answer wins; yours was not used."
    return "Answered", said


def answer_words(past: PastRequest) -> str:
    """The label of the option that was chosen."""
    chosen = past.answer.option_id if past.answer is not None else ""
    return next((option.label for option in past.request.options if option.id == chosen), chosen)
