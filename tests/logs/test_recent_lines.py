"""The last lines: so many and so much of them, the oldest go first."""

from __future__ import annotations

from router.logs.recent_lines import MAX_CHARACTERS, MAX_LINES, Line, RecentLines


def line(text: str) -> Line:
    """Create a line with this text."""
    return Line("ROUTER", "info", text, 0)


def test_the_last_are_told_oldest_first() -> None:
    recent = RecentLines()
    assert recent.last() == []
    for number in range(5):
        recent.add(line(str(number)))
    assert [each.text for each in recent.last(2)] == ["3", "4"]
    assert [each.text for each in recent.last(99)] == list("01234")
    assert recent.last(0) == []


def test_memory_is_bounded() -> None:
    recent = RecentLines()
    for number in range(3 * MAX_LINES):
        recent.add(line(str(number)))
    assert len(recent.last()) == MAX_LINES
    assert recent.last()[0].text == str(2 * MAX_LINES)
    for _ in range(MAX_LINES):
        recent.add(line("x" * 4096))
    assert sum(len(each.text) for each in recent.last()) == recent.characters() <= MAX_CHARACTERS
