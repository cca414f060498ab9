"""Watch from a thread that no plugin keeps the router's event loop to itself.

The thread looks 20 times a second at what the router's thread executes. Nothing is added to what
the router itself does, and without plugins there is no such thread.

A plugin that keeps the event loop for a second gets an exception, `PluginHung`, at whatever it is
executing; where the code is C that does not return, that has to wait until it does. A plugin that
is met in more than half of the looks of ten seconds takes too much of the router's time.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

import attrs

import router
from router.errors import PluginHung

LOOK_EVERY_S: Final = 0.05
HANG_S: Final = 1.0
LOOKS_KEPT: Final = 200
LARGEST_SHARE: Final = 0.5
# How far up the stack a plugin's frame is searched for.
DEEPEST: Final = 200
_ROUTER: Final = str(Path(router.__file__).parent) + os.sep


@attrs.define
class _Watched:
    """One watched plugin: where its code is, and how it was met of late."""

    folder: str
    # one entry for each look, whether the plugin's code was being executed
    looks: deque[bool] = attrs.field(factory=lambda: deque(maxlen=LOOKS_KEPT))
    share_reported: bool = False


class Watchdog:
    """Watches the thread that makes it.

    `progress` returns something else each time that the event loop goes on. `report` is called, in
    the watchdog's thread, with the folder of a plugin that takes too much time.
    """

    def __init__(self, progress: Callable[[], float], report: Callable[[str], None]) -> None:
        self._progress = progress
        self._report = report
        self._thread_id = threading.get_ident()
        self._watched: dict[str, _Watched] = {}
        self._uses: dict[str, int] = {}
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        # since when the same plugin is executed without any progress: its folder, what the
        # progress was then, and at how many looks
        self._held: tuple[str, float, int] = ("", 0.0, 0)

    def watch(self, folder: str) -> None:
        """Watch the plugin with its code in `folder`, or in the module of that name."""
        self._uses[folder] = self._uses.get(folder, 0) + 1
        self._watched.setdefault(folder, _Watched(folder))
        if self._thread is None:
            self._ends = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._ends,), name="plugin watchdog", daemon=True
            )
            self._thread.start()

    def forget(self, folder: str) -> None:
        """Watch a plugin no more; the thread ends with the last one."""
        self._uses[folder] -= 1
        if self._uses[folder]:
            return
        del self._uses[folder]
        self._watched.pop(folder, None)
        if not self._watched:
            self._ends.set()
            self._thread = None

    def _run(self, ends: threading.Event) -> None:
        while not ends.wait(LOOK_EVERY_S):
            self.look(sys._current_frames().get(self._thread_id))

    def look(self, frame: FrameType | None) -> None:
        """Look once: `frame` is the innermost one of what the watched thread executes."""
        folder = self._owner(frame)
        for watched in list(self._watched.values()):
            looks = watched.looks
            looks.append(watched.folder == folder)
            if len(looks) == LOOKS_KEPT and sum(looks) > LARGEST_SHARE * LOOKS_KEPT:
                looks.clear()
                self._report(watched.folder)
        progress = self._progress()
        held_by, since, looks_held = self._held
        if not folder or folder != held_by or progress != since:
            self._held = (folder, progress, 1 if folder else 0)
            return
        looks_held += 1
        self._held = (folder, progress, looks_held)
        if looks_held * LOOK_EVERY_S >= HANG_S and not _is_routers(frame):
            # if the plugin goes on even so, it gets another one after the same time
            self._held = (folder, progress, 0)
            raise_in_thread(self._thread_id)

    def _owner(self, frame: FrameType | None) -> str:
        """Return the folder of the plugin that is being executed, or an empty text."""
        for _ in range(DEEPEST):
            if frame is None:
                return ""
            name = frame.f_code.co_filename
            for folder in list(self._watched):
                if name.startswith(folder):
                    return folder
            frame = frame.f_back
        return ""


def raise_in_thread(thread_id: int) -> None:
    """Raise `PluginHung` in a thread, at the next instruction of Python that it executes."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread_id), ctypes.py_object(PluginHung)
    )


def _is_routers(frame: FrameType | None) -> bool:
    """Return whether the router's own code is being executed on a plugin's behalf: an exception at
    an arbitrary place there could leave the router in disorder.
    """
    return frame is not None and frame.f_code.co_filename.startswith(_ROUTER)


def code_folder(module_name: str) -> str:
    """Return where the code of a plugin's module is: the folder of its top-level package, or its
    file.
    """
    top = sys.modules[module_name.partition(".")[0]]
    paths = list(getattr(top, "__path__", ()))
    if paths:
        return str(paths[0]) + os.sep
    return str(getattr(top, "__file__", None) or module_name)
