"""The last lines: so many and so much of them, the oldest go first."""

from __future__ import annotations

from router.logs.recent import MOST_CHARACTERS, MOST_LINES, Line, Recent


def line(text: str) -> Line:
    """A line."""
    return Line("ROUTER", "info", text, 0)


def test_the_last_are_told_oldest_first() -> None:
    recent = Recent()
    assert recent.last() == []
    for number in range(5):
        recent.add(line(str(number)))
    assert [each.text for each in recent.last(2)] == ["3", "4"]
    assert [each.text for each in recent.last(99)] == list("01234")
    assert recent.last(0) == []


def test_memory_is_bounded() -> None:
    recent = Recent()
    for number in range(3 * MOST_LINES):
        recent.add(line(str(number)))
    assert len(recent.last()) == MOST_LINES
    assert recent.last()[0].text == str(2 * MOST_LINES)
    for _ in range(MOST_LINES):
        recent.add(line("x" * 4096))
    assert sum(len(each.text) for each in recent.last()) == recent.characters() <= MOST_CHARACTERS
