"""Check the layers of the router by its import statements: which package may import which.

An import counts wherever it stands, also inside a function or under TYPE_CHECKING: a name that is
only needed for an annotation still couples two packages. The `cimport`s of the `.pxd` files count
too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from support.house.sources import dotted, parsed

_DATA_PLANE = frozenset({"errors", "amqp", "engine", "core"})

ALLOWED: dict[str, frozenset[str]] = {
    # The stairs: each step stands on those before it.
    "errors": frozenset(),
    "amqp": frozenset({"errors"}),
    "engine": frozenset({"errors", "amqp"}),
    "core": frozenset({"errors", "amqp", "engine"}),
    # Beside them: who decides where addresses lead.
    "control": _DATA_PLANE | {"config"},
    # The sockets, and what is configured of them.
    "net": _DATA_PLANE | {"config", "fairness"},
    # A client stands on them too, and knows no router.
    "client": frozenset({"errors", "amqp", "engine", "net"}),
    # Rooms of their own.
    "build": frozenset(),
    "config": frozenset({"errors", "build"}),
    "fairness": frozenset(),
    "log_limits": frozenset(),
    "logs": frozenset({"config", "log_limits"}),
    "metrics": _DATA_PLANE | {"build", "config", "control", "fairness"},
    # What plugins see, and who runs them.
    "plugin_events": frozenset(),
    "plugin_samples": frozenset({"plugin_events"}),
    "plugin_credentials": frozenset(),
    "plugin": frozenset({"client", "config", "errors", "plugin_events", "plugin_samples"})
    | {"plugin_credentials"},
    "hosting": _DATA_PLANE
    | {"client", "config", "metrics", "net", "plugin", "plugin_events", "plugin_samples"},
    # Over everything.
    # Its agent is a client of the router that it tells of (docs/decisions/0036).
    "management": _DATA_PLANE | {"build", "client", "config", "control", "logs", "metrics"},
    # What of a running router can become another while it runs.
    "running_listeners": _DATA_PLANE | {"config", "metrics", "net"},
    "endpoints": _DATA_PLANE | {"config", "metrics", "net", "running_listeners"},
    "changes": _DATA_PLANE | {"config", "control", "net"},
    "settings": _DATA_PLANE | {"changes", "config", "control", "hosting", "logs", "metrics", "net"},
    "reconfiguration": _DATA_PLANE
    | {"config", "control", "endpoints", "hosting", "logs", "management", "metrics", "net"}
    | {"changes", "settings"},
    # What a router is made of before it has sockets, and many of them at once without any.
    "parts": _DATA_PLANE | {"config", "control", "net"},
    "simulation": _DATA_PLANE
    | {"client", "config", "control", "hosting", "net", "parts", "plugin_events", "plugin_samples"},
    "node": _DATA_PLANE
    | {"build", "config", "control", "endpoints", "hosting", "logs", "management", "metrics", "net"}
    | {"reconfiguration", "parts", "running_listeners"},
    "cli": _DATA_PLANE
    | {
        "build",
        "client",
        "config",
        "control",
        "endpoints",
        "log_limits",
        "logs",
        "management",
        "metrics",
        "net",
        "node",
        "running_listeners",
        "simulation",
    },
    "__main__": frozenset({"cli"}),
    "": frozenset(),  # router/__init__.py: importing any module must not import the others
}

CORE = (
    "model",
    "routers",
    "addresses",
    "deliveries",
    "link_routes",
    "links",
    "network",
    "forwarding",
    "diagnosis",
)
"""Packages of core: each may import those before it."""

PORTS = "router/core/ports.py"

SANS_IO = ("amqp", "engine", "core", "control")

OUTSIDE_WORLD = frozenset(
    {"asyncio", "os", "random", "secrets", "select", "selectors", "socket", "ssl"}
    | {"subprocess", "threading", "time", "trio"}
)
"""What code without sockets or a clock of its own has no use for: `now` and bytes are arguments."""

UNWORLDLY = dict.fromkeys(SANS_IO, OUTSIDE_WORLD) | {"simulation": OUTSIDE_WORLD - {"random"}}
"""What each room may not import of it; a simulation has dice, which its seed decides."""

_FROM_CIMPORT = re.compile(r"^\s*from\s+([\w.]+)\s+cimport\s+(\([^)]*\)|[^\n]+)", re.MULTILINE)
_CIMPORT = re.compile(r"^\s*cimport\s+([^\n]+)", re.MULTILINE)


def imported_modules(tree: ast.Module, module: str, *, package: bool) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute dotted name) of everything a module imports.

    `from a import b` yields both `a` and `a.b`, since `b` may be a module. `package` says that the
    file is an `__init__.py`, against which relative imports count one step less.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                above = module.split(".")
                above = above[: len(above) - node.level + package]
                source = ".".join([*above, source] if source else above)
            yield node.lineno, source
            for alias in node.names:
                yield node.lineno, f"{source}.{alias.name}"


def cimported_modules(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of everything a `.pxd` cimports."""
    for match in _CIMPORT.finditer(text):
        for name in match[1].split(","):
            yield _line(text, match.start(1)), name.split()[0]
    for match in _FROM_CIMPORT.finditer(text):
        line = _line(text, match.start(1))
        yield line, match[1]
        for name in match[2].strip("()").split(","):
            if name.strip():
                yield line, f"{match[1]}.{name.split()[0]}"


def _line(text: str, position: int) -> int:
    """Return the number of the line in which a character stands."""
    return text.count("\n", 0, position) + 1


def _room(module: str) -> str:
    """Return the room that a dotted name belongs to: `router.net.pump` is in `net`."""
    return [*module.split("."), ""][1]


def _all_imports(root: Path) -> Iterator[tuple[str, int, str]]:
    """Yield (relative path, line, dotted name) of each import and cimport of the router."""
    for name, tree in parsed(root, "router"):
        package = name.endswith("__init__.py")
        for line, target in imported_modules(tree, dotted(name), package=package):
            yield name, line, target
    for path in sorted((root / "router").rglob("*.pxd")):
        name = path.relative_to(root).as_posix()
        for line, target in cimported_modules(path.read_text(encoding="utf-8")):
            yield name, line, target


def upward_imports(root: Path) -> list[str]:
    """Return every import, inside the router, of a room not below the importer's own."""
    offences = {}
    for name, line, target in _all_imports(root):
        if target.split(".")[0] != "router":
            continue
        room = _room(dotted(name))
        other = _room(target)
        # `from router import build` yields `router` itself as well: the empty room, everyone's
        # ground.
        if other in ("", room) or not _is_room(root, other):
            continue
        if room not in ALLOWED:
            offences[name, 0] = f"{name}: router.{room} has no place in the order of imports yet"
        elif other not in ALLOWED[room]:
            offences[name, line] = f"{name}:{line}: {room or 'router'} imports router.{other}"
    return sorted(offences.values())


def upward_imports_in_core(root: Path) -> list[str]:
    """Return every import of a package of core by one that is before it in CORE.

    `ports` has interfaces for type checkers: it may name all packages, and all may name it.
    """
    offences = set()
    for name, line, target in _all_imports(root):
        if not name.startswith("router/core/") or not target.startswith("router.core."):
            continue
        if name == PORTS or target.startswith("router.core.ports"):
            continue
        package, other = name.split("/")[2], target.split(".")[2]
        if package not in CORE:
            if package != "__init__.py":
                offences.add(f"{name}: core/{package} has no place in the order of imports yet")
        elif other in CORE and CORE.index(other) > CORE.index(package):
            offences.add(f"{name}:{line}: core.{package} imports core.{other}")
    return sorted(offences)


def imports_of_ports_at_run_time(root: Path) -> list[str]:
    """Return every import of core's `ports`, or by it, that is not under TYPE_CHECKING alone."""
    offences = []
    for name, tree in parsed(root, "router"):
        typing_only = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for each in node.body
            for inner in ast.walk(each)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom) or id(node) in typing_only:
                continue
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            source = module or ""
            is_of_ports = source == "router.core.ports" or (
                source == "router.core" and any(each.name == "ports" for each in node.names)
            )
            if is_of_ports or (name == PORTS and source.startswith("router")):
                offences.append(f"{name}:{node.lineno}: imports {source} when the router runs")
    return offences


def _is_room(root: Path, name: str) -> bool:
    """Tell a module or folder of the router from a mere name that its `__init__` defines."""
    base = root / "router" / name
    return base.is_dir() or base.with_suffix(".py").is_file()


def worldly_imports(root: Path) -> list[str]:
    """Return every import of a clock, randomness, sockets or the like below `net`.

    A simulation may import randomness, but none of the others.
    """
    found = {
        (name, line, target.split(".")[0])
        for name, line, target in _all_imports(root)
        if _room(dotted(name)) in UNWORLDLY
    }
    return [
        f"{name}:{line}: imports {target}"
        for name, line, target in sorted(found)
        if target in UNWORLDLY[_room(dotted(name))]
    ]


def cython_imports(root: Path) -> list[str]:
    """Return every import of Cython by the router, which runs the same where none is installed."""
    return [
        f"{name}:{line}: imports {target}"
        for name, line, target in _all_imports(root)
        if name.endswith(".py") and target.split(".")[0].lower() == "cython"
    ]
