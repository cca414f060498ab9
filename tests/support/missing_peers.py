"""Programs that some tests talk to, and that a machine may lack."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRED = "TRIOUTE_REQUIRE_INTEROP"


def skip_without(reason: str) -> NoReturn:
    """Skip a test because a program is missing, or fail where `TRIOUTE_REQUIRE_INTEROP=1`."""
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{reason}, and {REQUIRED}=1 asks for it")
    pytest.skip(reason)
