"""Watchdog: detect, from a thread, plugins that block the router's event loop.

The thread samples the stack of the router's thread 20 times a second. The router itself does no
extra work, and without plugins there is no such thread.

A plugin that blocks the event loop for a second gets an exception, `PluginHung`, which a signal
handler raises at the point where the plugin is executing. If the plugin has called code of the
router or of Trio, an exception could leave that code in an inconsistent state. The handler then
only returns, and is called again a moment later. A signal handler is needed because only there can
the stack be inspected and an exception raised in one step. SIGURG is ignored by default, and few
programs use it.

A plugin that is executing for more than half of ten seconds takes too much of the router's time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

import attrs
import trio

import router
from router.errors import PluginHung

SAMPLE_INTERVAL_S: Final = 0.05
# Interval of samples while there is an exception that could not be raised yet.
RETRY_INTERVAL_S: Final = 0.001
HANG_S: Final = 1.0
SHARE_OVER_S: Final = 10.0
LARGEST_SHARE: Final = 0.5
# Maximum number of stack frames that are searched for a frame of a plugin.
MAX_FRAMES: Final = 200
SIGNAL: Final = signal.SIGURG
_ROUTER: Final = str(Path(router.__file__).parent) + os.sep
_TRIO: Final = str(Path(trio.__file__).parent) + os.sep
# Trio's event loop: the frames that it calls belong to tasks; its callers belong to no plugin.
_LOOP: Final = str(Path(trio.__file__).parent / "_core" / "_run.py")


@attrs.define
class _Watched:
    """Record of the recent samples of one watched plugin."""

    # for each sample: the seconds that it stands for, and whether the plugin was executing
    samples: deque[tuple[float, bool]] = attrs.field(factory=deque)
    uses: int = 0

    def add(self, elapsed_s: float, *, is_met: bool) -> float:
        """Add a sample, in which the plugin was executing if `is_met`.

        Return the plugin's share of the last 10 s, or 0 in the first 10 s.
        """
        samples = self.samples
        samples.append((elapsed_s, is_met))
        total = sum(each for each, _ in samples)
        while total - samples[0][0] >= SHARE_OVER_S:
            total -= samples.popleft()[0]
        if total < SHARE_OVER_S:
            return 0.0
        return sum(each for each, was_met in samples if was_met) / total


class Watchdog:
    """Watchdog for the plugins in the thread that creates it.

    `progress` returns a different value whenever the event loop has advanced. `flooded` is called,
    in the watchdog's thread, with the folder of a plugin that takes too much time. `hung` is called
    in the watched thread, in the task of the plugin that is about to get an exception.
    """

    def __init__(
        self,
        progress: Callable[[], float],
        flooded: Callable[[str], None],
        hung: Callable[[], None],
    ) -> None:
        self._progress = progress
        self._flooded = flooded
        self._hung = hung
        self._thread_id = threading.get_ident()
        self._may_interrupt = threading.current_thread() is threading.main_thread()
        self._watched: dict[str, _Watched] = {}
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        self._handler_before: object = None
        # the plugin that is executing without progress, the value of `progress`, and for how long
        self._held: tuple[str, float, float] = ("", 0.0, 0.0)
        # the plugin that gets an exception as soon as possible
        self._due = ""

    def watch(self, folder: str) -> None:
        """Watch the plugin whose code is in `folder` (a result of `code_folder`)."""
        self._watched.setdefault(folder, _Watched()).uses += 1
        if self._thread is None:
            if self._may_interrupt:
                self._handler_before = signal.signal(SIGNAL, self._interrupt)
            self._ends = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._ends,), name="plugin watchdog", daemon=True
            )
            self._thread.start()

    def forget(self, folder: str) -> None:
        """Stop watching a plugin; the watchdog's thread ends when no plugin is left."""
        watched = self._watched[folder]
        watched.uses -= 1
        if watched.uses:
            return
        del self._watched[folder]
        if self._due == folder:
            self._due = ""
        if not self._watched:
            self._ends.set()
            self._thread = None
            if self._may_interrupt:
                signal.signal(SIGNAL, self._handler_before)  # type: ignore[arg-type]

    def _run(self, ends: threading.Event) -> None:
        used_s, now = time.process_time(), time.monotonic()
        while not ends.wait(RETRY_INTERVAL_S if self._due else SAMPLE_INTERVAL_S):
            used_before, used_s = used_s, time.process_time()
            before, now = now, time.monotonic()
            # A plugin may hold the interpreter's lock, so that this thread takes no samples. But a
            # process that was stopped meanwhile was not busy: CPU time tells the two apart.
            elapsed_s = min(now - before, max(SAMPLE_INTERVAL_S, used_s - used_before))
            self.take_sample(sys._current_frames().get(self._thread_id), elapsed_s)

    def take_sample(self, frame: FrameType | None, elapsed_s: float) -> None:
        """Take a sample, `elapsed_s` after the previous one.

        `frame` is the innermost frame of the watched thread.
        """
        folder = self._owner(frame)
        for name, watched in list(self._watched.items()):
            if watched.add(elapsed_s, is_met=name == folder) > LARGEST_SHARE:
                watched.samples.clear()
                self._flooded(name)
        progress = self._progress()
        held_by, since, held_s = self._held
        if not folder or folder != held_by or progress != since:
            self._held = (folder, progress, 0.0)
            self._due = ""
            return
        held_s += elapsed_s
        self._held = (folder, progress, held_s)
        if held_s >= HANG_S:
            # if the plugin continues nevertheless, it gets another exception after the same time
            self._held = (folder, progress, 0.0)
            self._due = folder
        if self._due and self._may_interrupt:
            signal.pthread_kill(self._thread_id, SIGNAL)

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        """Raise the exception that is due, unless code of the router or Trio is executing."""
        if frame is None or not self._due or self._owner(frame) != self._due:
            return
        if not frame.f_code.co_filename.startswith((_ROUTER, _TRIO)):
            self._due = ""
            self._hung()
            raise PluginHung

    def _owner(self, frame: FrameType | None) -> str:
        """Return the folder of the plugin that is executing, or an empty string."""
        for _ in range(MAX_FRAMES):
            if frame is None or frame.f_code.co_filename == _LOOP:
                return ""
            name = frame.f_code.co_filename
            for folder in list(self._watched):
                if name.startswith(folder):
                    return folder
            frame = frame.f_back
        return ""


def code_folder(module_name: str) -> str:
    """Return the location of the code of a plugin's module.

    This is the folder of the outermost package that is not a namespace package. Without such a
    package, it is the module's file; without a file, it is the module's name.
    """
    parts = module_name.split(".")
    for count in range(1, len(parts)):
        package = sys.modules.get(".".join(parts[:count]))
        place = getattr(package, "__file__", None)
        if place is not None:
            return str(Path(place).parent) + os.sep
    module = sys.modules[module_name]
    place = getattr(module, "__file__", None)
    if place is None:
        return module_name
    is_package = hasattr(module, "__path__")
    return str(Path(place).parent) + os.sep if is_package else str(place)
