"""Imports point down only, and nothing below the sockets knows a clock, chance or the network."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.house import imports
from support.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]

# The rooms that the samples import from.
ROOMS = {
    f"router/{room}/__init__.py": ""
    for room in (
        "amqp",
        "engine",
        "core",
        "control",
        "config",
        "metrics",
        "management",
        "net",
        "cli",
    )
} | {
    "router/errors.py": "",
    "router/node.py": "",
    "router/build.py": "",
    "router/amqp/types.py": "",
}


def test_imports_of_this_tree_point_down() -> None:
    assert imports.upward_imports(ROOT) == []


def test_imports_in_core_point_down() -> None:
    assert imports.upward_imports_in_core(ROOT) == []


def test_interfaces_of_core_are_for_type_checkers_in_this_tree() -> None:
    assert imports.imports_of_ports_at_run_time(ROOT) == []


def test_an_import_of_interfaces_when_the_router_runs_is_found(tmp_path: Path) -> None:
    typing_only = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {} import X\n"
    texts = {
        "router/core/ports.py": typing_only.format("router.core.model.x"),
        "router/core/model/x.py": typing_only.format("router.core.ports"),
        "router/core/model/y.py": "from router.core.ports import X\n",
        "router/core/model/z.py": "def f():\n    from router.core import ports\n",
    }
    found = imports.imports_of_ports_at_run_time(write_tree(tmp_path, texts))
    assert [each.split(":")[0] for each in found] == [
        "router/core/model/y.py",
        "router/core/model/z.py",
    ]
    texts["router/core/ports.py"] = "from router.core.model.x import X\n"
    assert len(imports.imports_of_ports_at_run_time(write_tree(tmp_path, texts))) == 3


@pytest.mark.parametrize(
    ("path", "line", "offence"),
    [
        ("model/x.py", "from router.core.links import attach", "core.model imports core.links"),
        ("links/x.pxd", "from router.core.forwarding.x cimport X", "core.links imports core.forwa"),
        ("extra/x.py", "", "core/extra has no place"),
        ("x.py", "", "core/x.py has no place"),
    ],
)
def test_an_upward_import_in_core_is_found(
    tmp_path: Path, path: str, line: str, offence: str
) -> None:
    text = f"{line}\nfrom router.core.model import y\n"
    tree = write_tree(tmp_path, {f"router/core/{path}": text, "router/core/model/y.py": ""})
    (found,) = imports.upward_imports_in_core(tree)
    assert offence in found


def test_this_tree_is_sans_io_below_net() -> None:
    assert imports.worldly_imports(ROOT) == []


def test_this_tree_runs_without_cython() -> None:
    assert imports.cython_imports(ROOT) == []


@pytest.mark.parametrize(
    ("path", "line", "offence"),
    [
        ("router/amqp/x.py", "from router.engine import link", "amqp imports router.engine"),
        ("router/amqp/x.py", "import router.core.addresses.table", "amqp imports router.core"),
        ("router/engine/x.py", "from router import core", "engine imports router.core"),
        ("router/engine/x.py", "from ..core import table", "engine imports router.core"),
        ("router/engine/__init__.py", "from ..core import table", "engine imports router.core"),
        (
            "router/core/x.py",
            "from router.config.model import Listener",
            "core imports router.config",
        ),
        (
            "router/control/x.py",
            "def f():\n    import router.net.pump",
            "control imports router.net",
        ),
        ("router/net/pump.py", "from router.control import paths", "net imports router.control"),
        ("router/net/pump.py", "from router.node import Node", "net imports router.node"),
        ("router/management/x.py", "import router.node", "management imports router.node"),
        ("router/metrics/x.py", "import router.net", "metrics imports router.net"),
        ("router/node.py", "import router.cli.main", "node imports router.cli"),
        ("router/errors.py", "from router.amqp.types import Symbol", "errors imports router.amqp"),
        ("router/__init__.py", "from router.node import Node", "router imports router.node"),
        (
            "router/core/x.pxd",
            "from router.control.paths cimport Path",
            "core imports router.control",
        ),
        ("router/amqp/x.pxd", "cimport router.engine.link", "amqp imports router.engine"),
        ("router/amqp/x.pxd", "cimport cython, router.core.x as c", "amqp imports router.core"),
        (
            "router/amqp/x.pxd",
            "from router cimport (\n  amqp,\n  net,\n)",
            "amqp imports router.net",
        ),
        (
            "router/engine/x.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from router.core import x",
            "engine imports router.core",
        ),
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, path: str, line: str, offence: str) -> None:
    tree = write_tree(tmp_path, ROOMS | {path: line})
    found = imports.upward_imports(tree)
    assert len(found) == 1
    assert found[0].startswith(f"{path}:")
    assert found[0].endswith(offence)


def test_a_new_room_must_be_given_a_place(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, ROOMS | {"router/attic/x.py": "from router.amqp import types"})
    assert imports.upward_imports(tree) == [
        "router/attic/x.py: router.attic has no place in the order of imports yet"
    ]


def test_downward_and_sideways_imports_are_taken(tmp_path: Path) -> None:
    good = {
        "router/amqp/decode.py": "from router import errors\nfrom router.amqp import types\n",
        "router/engine/link.py": "import attrs\nfrom . import states\n",
        "router/engine/link.pxd": "from router.amqp.decode cimport Cursor, Frame as F\n",
        "router/net/pump.py": "import socket, trio\nfrom router.engine.link import Link\n",
        "router/node.py": "from router import __version__, build\nfrom router.net import pump\n",
        "router/cli/main.py": "from router.node import Node\n",
        "router/__main__.py": "from router.cli.main import main\n",
    }
    tree = write_tree(tmp_path, ROOMS | good)
    assert imports.upward_imports(tree) == []
    assert imports.worldly_imports(tree) == []


@pytest.mark.parametrize("room", ["amqp", "engine", "core", "control"])
@pytest.mark.parametrize(
    "line",
    [
        "import trio",
        "import time",
        "from time import monotonic",
        "import random as r",
        "from secrets import token_bytes",
        "import socket",
        "import ssl",
        "import os.path",
        "def f():\n    import os",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import trio",
    ],
)
def test_the_outside_world_is_found(tmp_path: Path, room: str, line: str) -> None:
    tree = write_tree(tmp_path, {f"router/{room}/x.py": line})
    assert len(imports.worldly_imports(tree)) == 1


@pytest.mark.parametrize(
    "line", ["import cython", "from cython import cclass", "import Cython.Build"]
)
def test_an_import_of_cython_is_found(tmp_path: Path, line: str) -> None:
    tree = write_tree(tmp_path, {"router/amqp/x.py": line})
    assert imports.cython_imports(tree)


def test_a_simulation_has_dice_and_nothing_else_of_the_world(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path,
        {**ROOMS, "router/simulation/x.py": "from random import Random\nimport time\n"},
    )
    assert imports.worldly_imports(tree) == ["router/simulation/x.py:2: imports time"]
