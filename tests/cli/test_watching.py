"""Looking again and again, with a clock that jumps."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from router.cli.watching import Watch, picture, watch


async def looks(plan: Watch, autojump_clock: Any) -> list[float]:
    """When a watch looked, from its begin on; each look takes a while."""
    began, times = trio.current_time(), []

    async def look() -> int:
        times.append(trio.current_time() - began)
        await trio.sleep(0.5)
        return len(times)

    await watch(plan, look, lambda seen, number: [f"look {seen} {number}"])
    return times


async def test_every_so_often_whatever_a_look_takes(
    autojump_clock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await looks(Watch(2.0, count=3), autojump_clock) == [0, 2, 4]
    assert capsys.readouterr().out == "look 1 0\nlook 2 1\nlook 3 2\n"


async def test_what_takes_too_long_is_not_made_up_for(autojump_clock: Any) -> None:
    assert await looks(Watch(0.2, count=3), autojump_clock) == [0, 0.5, 1.0]


async def test_a_screen_is_drawn_over_and_its_last_picture_stays(
    autojump_clock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    await looks(Watch(1.0, count=2, is_screen=True), autojump_clock)
    told = capsys.readouterr().out
    assert told.startswith("\x1b[?1049h")
    assert told.count("\x1b[H") == 2
    assert told.endswith("\x1b[?1049llook 2 1\n")


def test_a_picture_is_no_higher_than_the_screen() -> None:
    lines = [f"line {number}" for number in range(10)]
    assert picture(lines, 11).count("\n") == 10
    cut = picture(lines, 10)
    assert cut.count("\n") == 9
    assert "line 7" in cut
    assert "line 8" not in cut
    assert "... 2 more lines" in cut
