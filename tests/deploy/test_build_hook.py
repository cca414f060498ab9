"""The wheel that the build hook makes of a small package: compiled, uncompiled, or refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.trees import EXTENSION, write_tree

ROOT = Path(__file__).resolve().parents[2]

PACKAGE = {
    "README.md": "A sample.\n",
    "LICENSE": "None.\n",
    "router/__init__.py": "",
    "router/amqp/__init__.py": "",
    "router/amqp/octets.py": "def first(data):\n    return data[0]\n",
    "router/amqp/octets.pxd": "cdef inline int first(bytes data) except? -1:\n    return data[0]\n",
    "router/amqp/cursor.py": """
        class Cursor:
            def __init__(self, data: bytes) -> None:
                self.data = data

            def take(self) -> int:
                return self.data[0]
        """,
    "router/amqp/cursor.pxd": """
        from router.amqp cimport octets

        cdef class Cursor:
            cdef bytes data
            cpdef int take(self) except? -1
        """,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Write a source tree with this project's build, around a package of one hot module."""
    tree = write_tree(tmp_path / "tree", PACKAGE)
    shutil.copytree(ROOT / "deploy" / "build", tree / "deploy" / "build")
    shutil.copy(ROOT / "pyproject.toml", tree)
    shutil.copy(ROOT / "router" / "build.py", tree / "router")
    return tree


def build(tree: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Build the tree's wheel into `dist` with this environment's tools."""
    environment = {name: value for name, value in os.environ.items() if "TRIOUTE" not in name}
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"],
        cwd=tree,
        env={**environment, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def unpack(tree: Path) -> tuple[Path, str]:
    """Unpack the one wheel that was built; return its folder and its file name."""
    (wheel,) = (tree / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree / "site")
    return tree / "site" / "router", wheel.name


def record(installed: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((installed / "_build.json").read_text(encoding="utf-8"))
    return found


def sources(tree: Path) -> list[str]:
    files = (path for path in (tree / "router").rglob("*") if path.suffix != ".pyc")
    return sorted(path.relative_to(tree).as_posix() for path in files if path.is_file())


def test_a_compiler_gives_a_compiled_wheel_with_its_sources(tree: Path) -> None:
    before = sources(tree)
    done = build(tree, TRIOUTE_COMPILE="1")
    assert done.returncode == 0, done.stdout
    installed, name = unpack(tree)
    assert not name.endswith("-none-any.whl")
    beside = sorted(path.name for path in (installed / "amqp").glob("cursor*"))
    assert beside == [f"cursor{EXTENSION}", "cursor.pxd", "cursor.py"]
    assert not list(installed.glob("**/octets*.so"))
    assert record(installed)["compiled"] == ["router.amqp.cursor"]
    assert sources(tree) == before
    say = "from router.amqp.cursor import Cursor; print(Cursor(b'A').take(), Cursor.__init__)"
    ran = subprocess.run(
        [sys.executable, "-P", "-c", say],
        env={**os.environ, "PYTHONPATH": str(installed.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("65 <slot wrapper")


def test_progress_is_written_where_it_is_asked_for(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "progress"
    done = build(tree, TRIOUTE_COMPILE="1", TRIOUTE_PROGRESS=str(file))
    assert done.returncode == 0, done.stdout
    translated, compiled, modules = map(int, file.read_text().split())
    assert 0 <= compiled <= translated <= modules == 1


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"TRIOUTE_COMPILE": "0"}, "TRIOUTE_COMPILE=0 was set"),
        ({"CC": "no-such-compiler"}, "no C compiler found"),
    ],
)
def test_without_a_compiler_the_wheel_is_pure_and_says_what_that_costs(
    tree: Path, settings: dict[str, str], why: str
) -> None:
    done = build(tree, **settings)
    assert done.returncode == 0, done.stdout
    notice = (
        f"trioute: {why}, installed the uncompiled data plane; "
        "forwarding costs about 15 times more CPU per message"
    )
    assert [line for line in done.stdout.splitlines() if why in line] == [notice]
    installed, name = unpack(tree)
    assert name.endswith("-py3-none-any.whl")
    assert not list(installed.rglob(f"*{EXTENSION}"))
    assert record(installed)["why"] == why


def test_a_compiler_may_be_demanded(tree: Path) -> None:
    done = build(tree, CC="no-such-compiler", TRIOUTE_COMPILE="1")
    assert done.returncode != 0
    assert "no C compiler found" in done.stdout


def test_code_that_does_not_compile_is_an_error_where_a_compiler_works(tree: Path) -> None:
    with (tree / "router/amqp/cursor.pxd").open("a", encoding="utf-8") as pxd:
        pxd.write("    cdef NoSuchType field\n")
    done = build(tree)
    assert done.returncode != 0
    assert "NoSuchType" in done.stdout
    assert "does not compile" in done.stdout
    assert "Traceback" not in done.stdout
