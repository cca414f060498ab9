"""Every target that can be run alone is run here as well, for a short while."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from support.examples import examples

FOLDER = Path(__file__).parent
TARGETS = ["frame_readers", "one_connection", "any_schedule"]


def load(name: str) -> Any:
    """Import a target from its file; the folder is no package."""
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOADED = {name: load(name).target for name in TARGETS}


@pytest.mark.parametrize("name", TARGETS)
@examples(150)
@given(data=st.binary(max_size=300))
def test_any_octets(name: str, data: bytes) -> None:
    LOADED[name](data)
