"""Replace files as a whole: a reader sees the old file or the new one, never a part of one.

This also holds after a crash of the process or of the host: the new file is on the disk before it
gets its name, and the name is on the disk before the call returns.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def replace_file(file: Path, text: str) -> None:
    """Replace the content of `file` with `text`; afterwards only the owner can read the file.

    The owner stays the same. Raises OSError on failure, and then removes the half-written file.
    """
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as new:
            new.write(text)
            new.flush()
            os.fchmod(new.fileno(), 0o600)
            if file.exists():
                # If root replaces the file, it must stay readable for the router's user.
                old = file.stat()
                os.fchown(new.fileno(), old.st_uid, old.st_gid)
            os.fsync(new.fileno())
        Path(name).replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    _sync_folder(file)


def move_file(file: Path, there: Path) -> None:
    """Rename `file` to `there`, in the same folder, in place of any file of that name.

    Does nothing if `file` does not exist. Raises OSError on failure.
    """
    with contextlib.suppress(FileNotFoundError):
        file.replace(there)
        _sync_folder(there)


def _sync_folder(file: Path) -> None:
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
