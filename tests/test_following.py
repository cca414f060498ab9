"""The page that follows a message through the code, beside a message that goes through the code."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType

import pytest

from router.amqp.performatives import Accepted, Disposition
from router.build import data_plane

from support.loopback import dialled, running_node

PAGE = Path(__file__).parents[1] / "docs" / "follow-a-message.md"
ROW = re.compile(r"^\| (\d+) \| `([\w.]+)` \| ([\w/]+)\.py \|", re.MULTILINE)
A_DOZEN = 12


def rows() -> list[tuple[str, str]]:
    """Return the functions of the page's table, in its order, each with its module."""
    found = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert [int(number) for number, _, _ in found] == list(range(1, len(found) + 1))
    return [(name, module) for _, name, module in found]


def path() -> list[tuple[str, object]]:
    """Return the functions of the page's table, in its order, with their names."""
    found = []
    for name, module in rows():
        place: object = import_module(f"router.{module.replace('/', '.')}")
        for part in name.split("."):
            place = getattr(place, part)
        found.append((name, place))
    return found


@contextmanager
def recorded(names: dict[CodeType, str]) -> Iterator[list[str]]:
    """Record the calls of functions by their names, in order."""
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in names:
            calls.append(names[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def test_the_path_has_a_dozen_functions_at_most() -> None:
    assert 0 < len(rows()) <= A_DOZEN


@pytest.mark.skipif(data_plane() != "interpreted", reason="compiled functions cannot be followed")
async def test_a_message_takes_the_path_of_the_page() -> None:
    functions = path()
    codes = {getattr(function, "__code__", None): name for name, function in functions}
    names = {code: name for code, name in codes.items() if isinstance(code, CodeType)}
    assert len(names) == len(functions)
    async with (
        running_node() as running,
        dialled(running.address) as sender,
        dialled(running.address) as receiver,
    ):
        await sender.begin()
        await receiver.begin()
        await receiver.attach_receiver("q", credit=1)
        await sender.attach_sender("q")
        with recorded(names) as calls:
            await sender.transfer(0, b"hello")
            transfer, _ = await receiver.message()
            await receiver.settle(Accepted(), transfer.delivery_id or 0)
            await sender.hear_until(Disposition)
    steps = iter(calls)
    # each comes after the one before it
    missing = [name for name, _ in functions if name not in steps]
    assert not missing, calls
