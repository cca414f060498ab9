"""A file that is replaced as a whole: who reads it sees the old one or the new one, never a half.

So it is after a crash of the process or of the host, too: what is new is on the disk before it has
the name, and the name is on the disk before anybody is told.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def replace_file(file: Path, text: str) -> None:
    """Put `text` in the place of `file`, for its owner alone to read; raises OSError.

    The owner stays who it was. What is in the way of it, half written, is taken away again.
    """
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as new:
            new.write(text)
            new.flush()
            os.fchmod(new.fileno(), 0o600)
            if file.exists():
                # Set by root, the file must stay readable for the user that the router runs as.
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
    """Give `file`, if it is there, another name in its folder, taken or not; raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        file.replace(there)
        _sync_folder(there)


def _sync_folder(file: Path) -> None:
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
