"""Compare the causes that were named with those planted, and format the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
from router_spark.jobs.causes import NONE, UNKNOWN

from support.pipeline.planting import KINDS, Planted

BEGIN: Final = "<!-- score -->"
END: Final = "<!-- end of score -->"
NOTHING: Final = "nothing"


@attrs.define
class Score:
    """Counts for one kind of cause: planted, of these right and unknown, and wrong names.

    `unknown` are those that were not named, `wrong` the names given instead or in addition.
    """

    planted: int = 0
    right: int = 0
    unknown: int = 0
    wrong: int = 0


@attrs.frozen
class Scores:
    """Scores by kind, and a description of each wrong answer."""

    by_kind: dict[str, Score]
    mistakes: list[str]

    @property
    def total(self) -> Score:
        """Return the sum of all kinds."""
        names = [field.name for field in attrs.fields(Score)]
        sums = {name: sum(getattr(each, name) for each in self.by_kind.values()) for name in names}
        return Score(**sums)


def score(
    planted: Mapping[int, list[Planted]], named: Iterable[tuple[int, str, str | None]]
) -> Scores:
    """Compare the causes; a name is right only if its kind and its subject are those planted.

    A wrong name counts against the kind that was planted first.
    """
    answers: dict[int, set[Planted]] = {}
    for case, kind, subject in named:
        if kind not in (NONE, UNKNOWN):
            answers.setdefault(case, set()).add(Planted(kind, subject or ""))
    scores = {kind: Score() for kind in KINDS}
    mistakes = []
    for case, causes in sorted(planted.items()):
        given = answers.get(case, set())
        wrong = given - set(causes)
        for cause in causes:
            scores[cause.kind].planted += 1
            scores[cause.kind].right += cause in given
            scores[cause.kind].unknown += cause not in given
        first = causes[0].kind if causes else NOTHING
        if not causes:
            scores[first].planted += 1
            scores[first].right += not given
        scores[first].wrong += len(wrong)
        mistakes += [
            f"incident {case}: {_words(causes)}, and {each.kind} {each.subject} was named"
            for each in sorted(wrong, key=str)
        ]
    return Scores(scores, mistakes)


def _words(causes: Iterable[Planted]) -> str:
    return " and ".join(f"{each.kind} {each.subject}" for each in causes) or NOTHING


def table(scores: Scores, first: int, count: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{count} incidents, seeds {first} to {first + count - 1}:"
    yield ""
    yield "| Kind | Planted | Named rightly | Not named | Named wrongly |"
    yield "|---|---:|---:|---:|---:|"
    for kind, each in [*scores.by_kind.items(), ("all", scores.total)]:
        yield f"| {kind} | {each.planted} | {each.right} | {each.unknown} | {each.wrong} |"


def write_docs(path: Path, lines: Iterable[str]) -> None:
    """Replace the lines between the markers of a page."""
    text = path.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{tail}")
