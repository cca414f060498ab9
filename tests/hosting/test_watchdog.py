"""The watchdog of plugins: whose code is executed, for how long, and how often."""

from __future__ import annotations

import bisect  # noqa: F401 - a module that is no package
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio

from router.errors import PluginHung
from router.hosting import watchdog as under_test
from router.hosting.watchdog import (
    HANG_S,
    SAMPLE_INTERVAL_S,
    SHARE_OVER_S,
    Watchdog,
    code_folder,
)

# The first sample is when the time begins.
LOOKS_UNTIL_HUNG = round(HANG_S / SAMPLE_INTERVAL_S) + 2
LOOKS_OF_ALL = round(SHARE_OVER_S / SAMPLE_INTERVAL_S)


def frames_of(path: Path, then: str = "frame = inspect.currentframe()") -> FrameType:
    """Return the innermost frame of a call into the code of a file."""
    names: dict[str, Any] = {}
    text = f"import inspect\ndef work():\n    {then}\n    return frame\nfound = work()\n"
    exec(compile(text, str(path), "exec"), names)
    frame = names["found"]
    assert isinstance(frame, FrameType)
    return frame


class World:
    """A watchdog whose samples are taken by the test, at a file that stands for a plugin."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.progress = 0.0
        self.flooding: list[str] = []
        self.hung = 0
        self.signals = 0
        monkeypatch.setattr(signal, "pthread_kill", self.signalled)
        self.dog = Watchdog(lambda: self.progress, self.flooding.append, self.hangs)
        self.folder = str(tmp_path / "plugin") + os.sep
        self.dog._watched[self.folder] = under_test._Watched()
        self.inside = frames_of(tmp_path / "plugin" / "code.py")
        self.outside = frames_of(tmp_path / "other.py")

    def signalled(self, _thread: int, _number: int) -> None:
        """Count a signal instead of sending it."""
        self.signals += 1

    def hangs(self) -> None:
        """Count the exceptions."""
        self.hung += 1

    def take_sample(self, frame: FrameType | None, elapsed_s: float = SAMPLE_INTERVAL_S) -> None:
        """Look once."""
        self.dog.take_sample(frame, elapsed_s)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """One plugin is watched."""
    return World(tmp_path, monkeypatch)


def test_who_keeps_the_event_loop_gets_an_exception(world: World) -> None:
    for _ in range(LOOKS_UNTIL_HUNG - 3):
        world.take_sample(world.inside)
    assert (world.signals, world.hung) == (0, 0)
    while not world.signals:
        world.take_sample(world.inside)
    assert (world.signals, world.hung) == (1, 0)
    # tried again until it is raised, which is where the plugin's own code is executed
    world.take_sample(world.inside)
    assert world.signals == 2
    world.dog._interrupt(0, world.outside)
    with pytest.raises(PluginHung):
        world.dog._interrupt(0, world.inside)
    assert world.hung == 1
    world.dog._interrupt(0, world.inside)
    # and another one, if it goes on nevertheless
    for _ in range(LOOKS_UNTIL_HUNG):
        world.take_sample(world.inside)
    assert world.signals > 2


def test_one_look_may_stand_for_a_long_time(world: World) -> None:
    world.take_sample(world.inside, 5.0)
    world.take_sample(world.inside, 0.7)
    assert world.signals == 0
    world.take_sample(world.inside, 0.7)
    assert world.signals == 1


def test_who_lets_the_event_loop_go_on_does_not(world: World) -> None:
    for _ in range(3 * LOOKS_UNTIL_HUNG):
        world.progress += 1
        world.take_sample(world.inside)
    for _ in range(3 * LOOKS_UNTIL_HUNG):
        world.take_sample(world.outside)
        world.take_sample(None)
    for number in range(3 * LOOKS_UNTIL_HUNG):
        world.take_sample(world.inside if number % 5 else world.outside)
    assert world.signals == 0


@pytest.mark.parametrize("whose", [under_test, trio])
def test_code_of_the_router_and_of_trio_is_not_interrupted(
    world: World, tmp_path: Path, whose: Any
) -> None:
    # a plugin calls it, and the signal comes then
    looked: list[FrameType] = []

    def look() -> None:
        frame = sys._getframe(1)
        for _ in range(LOOKS_UNTIL_HUNG):
            world.take_sample(frame)
        assert world.signals
        world.dog._interrupt(0, frame)
        looked.append(frame)

    called: dict[str, Any] = {"look": look}
    own = Path(whose.__file__).with_name("x.py")
    exec(compile("def ask():\n    look()\n", str(own), "exec"), called)
    inside = tmp_path / "plugin" / "code.py"
    exec(compile("ask()\n", str(inside), "exec"), {"ask": called["ask"]})
    assert looked


def test_who_takes_more_than_half_of_the_time_is_reported(world: World) -> None:
    for number in range(LOOKS_OF_ALL + 5):
        world.progress += 1
        world.take_sample(world.inside if number % 5 < 3 else world.outside)
    assert world.flooding == [world.folder]
    # once, until it has done so for as long again
    for _ in range(10):
        world.progress += 1
        world.take_sample(world.inside)
    assert len(world.flooding) == 1


def test_who_takes_half_of_the_time_is_not(world: World) -> None:
    for number in range(3 * LOOKS_OF_ALL):
        world.progress += 1
        world.take_sample(world.inside if number % 2 else world.outside)
    assert not world.flooding


def test_whoever_started_the_router_is_no_plugin(world: World, tmp_path: Path) -> None:
    # the launcher is in the plugin's package, and the event loop runs below it
    found: list[str] = []

    def look() -> None:
        found.append(world.dog._owner(sys._getframe(1)))

    loop: dict[str, Any] = {"look": look}
    exec(compile("def run():\n    look()\n", under_test._LOOP, "exec"), loop)
    launcher = tmp_path / "plugin" / "launcher.py"
    exec(compile("run()\n", str(launcher), "exec"), {"run": loop["run"]})
    assert found == [""]


def test_there_is_a_thread_as_long_as_there_are_plugins() -> None:
    before = threading.active_count(), signal.getsignal(under_test.SIGNAL)
    dog = Watchdog(lambda: 0.0, lambda _: None, lambda: None)
    assert threading.active_count() == before[0]
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
    assert signal.getsignal(under_test.SIGNAL) == before[1]


def test_where_the_code_of_a_module_is() -> None:
    package = Path(sys.modules["router"].__path__[0])
    assert code_folder("router.hosting.watchdog") == str(package) + os.sep
    # a module that is no package
    assert code_folder("bisect") == sys.modules["bisect"].__file__


def test_a_namespace_is_nobodys_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for portion in ("one", "two"):
        folder = tmp_path / portion / "shared_names" / portion
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        monkeypatch.syspath_prepend(str(tmp_path / portion))
        __import__(f"shared_names.{portion}")
        assert code_folder(f"shared_names.{portion}") == str(folder) + os.sep
