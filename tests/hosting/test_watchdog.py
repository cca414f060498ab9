"""The watchdog of plugins: whose code is executed, for how long, and how often."""

from __future__ import annotations

import bisect  # noqa: F401 - a module that is no package
import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from router.errors import PluginHung
from router.hosting import watchdog as under_test
from router.hosting.watchdog import (
    HANG_S,
    LOOK_EVERY_S,
    LOOKS_KEPT,
    Watchdog,
    code_folder,
)

LOOKS_UNTIL_HUNG = round(HANG_S / LOOK_EVERY_S)


def frames_of(path: Path, then: str = "frame = inspect.currentframe()") -> FrameType:
    """The innermost frame of a call into the code of a file."""
    names: dict[str, Any] = {}
    text = f"import inspect\ndef work():\n    {then}\n    return frame\nfound = work()\n"
    exec(compile(text, str(path), "exec"), names)
    frame = names["found"]
    assert isinstance(frame, FrameType)
    return frame


class World:
    """A watchdog whose looks are made by the test."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.progress = 0.0
        self.flooding: list[str] = []
        self.raised: list[int] = []
        monkeypatch.setattr(under_test, "raise_in_thread", self.raised.append)
        self.dog = Watchdog(lambda: self.progress, self.flooding.append)
        self.folder = str(tmp_path / "plugin") + os.sep
        self.dog._watched[self.folder] = under_test._Watched(self.folder)
        self.inside = frames_of(tmp_path / "plugin" / "code.py")
        self.outside = frames_of(tmp_path / "other.py")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """One plugin is watched."""
    return World(tmp_path, monkeypatch)


def test_who_keeps_the_event_loop_gets_an_exception(world: World) -> None:
    for _ in range(LOOKS_UNTIL_HUNG - 1):
        world.dog.look(world.inside)
    assert not world.raised
    world.dog.look(world.inside)
    assert world.raised == [threading.get_ident()]
    # and another one, if it goes on nevertheless
    for _ in range(LOOKS_UNTIL_HUNG):
        world.dog.look(world.inside)
    assert len(world.raised) == 2


def test_who_lets_the_event_loop_go_on_does_not(world: World) -> None:
    for _ in range(3 * LOOKS_UNTIL_HUNG):
        world.progress += 1
        world.dog.look(world.inside)
    for _ in range(3 * LOOKS_UNTIL_HUNG):
        world.dog.look(world.outside)
        world.dog.look(None)
    for number in range(3 * LOOKS_UNTIL_HUNG):
        world.dog.look(world.inside if number % 5 else world.outside)
    assert not world.raised


def test_the_routers_own_code_is_not_interrupted(world: World, tmp_path: Path) -> None:
    # a plugin calls it, and a look comes then
    looked: list[bool] = []

    def look() -> None:
        frame = sys._getframe(1)
        looked.append(under_test._is_routers(frame))
        for _ in range(LOOKS_UNTIL_HUNG):
            world.dog.look(frame)

    routers: dict[str, Any] = {"look": look}
    own = Path(under_test.__file__).with_name("x.py")
    exec(compile("def ask():\n    look()\n", str(own), "exec"), routers)
    inside = tmp_path / "plugin" / "code.py"
    exec(compile("ask()\n", str(inside), "exec"), {"ask": routers["ask"]})
    assert looked == [True]
    assert not world.raised


def test_who_takes_more_than_half_of_the_time_is_reported(world: World) -> None:
    for number in range(LOOKS_KEPT):
        world.progress += 1
        world.dog.look(world.inside if number % 5 < 3 else world.outside)
    assert world.flooding == [world.folder]
    # once, until it has done so for as long again
    world.dog.look(world.inside)
    assert len(world.flooding) == 1


def test_who_takes_half_of_the_time_is_not(world: World) -> None:
    for number in range(3 * LOOKS_KEPT):
        world.progress += 1
        world.dog.look(world.inside if number % 2 else world.outside)
    assert not world.flooding


def test_there_is_a_thread_as_long_as_there_are_plugins() -> None:
    before = threading.active_count()
    dog = Watchdog(lambda: 0.0, lambda _: None)
    assert threading.active_count() == before
    dog.watch("/somewhere/")
    thread = dog._thread
    assert thread is not None
    assert thread.is_alive()
    dog.watch("/somewhere/")
    dog.forget("/somewhere/")
    assert dog._thread is thread
    dog.forget("/somewhere/")
    thread.join(10)
    assert not thread.is_alive()


def test_an_exception_comes_out_of_what_another_thread_executes() -> None:
    begun = threading.Event()
    came: list[type] = []

    def spin() -> None:
        try:
            begun.set()
            while True:
                pass
        except PluginHung as hung:
            came.append(type(hung))

    thread = threading.Thread(target=spin)
    thread.start()
    assert begun.wait(10)
    assert thread.ident is not None
    under_test.raise_in_thread(thread.ident)
    thread.join(10)
    assert came == [PluginHung]


def test_where_the_code_of_a_module_is() -> None:
    package = Path(sys.modules["router"].__path__[0])
    assert code_folder("router.hosting.watchdog") == str(package) + os.sep
    # a module that is no package
    assert code_folder("bisect") == sys.modules["bisect"].__file__
