"""The one door to memory: both of its bodies are held to the same table.

The compiled body is inline code in `octets.pxd`, which Python cannot call. So a small module that
hands its calls through is compiled for the test, by the same script and with the same directives as
the data plane. Only a machine without a C compiler leaves that body out.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from router import build
from router.amqp import octets

from support.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]
COMPILE = ROOT / "deploy" / "build" / "compile.py"
NO_COMPILER_EXIT = 3

DOOR = {
    "router/__init__.py": "",
    "router/amqp/__init__.py": "",
    "router/amqp/door.py": """
        from router.amqp import octets

        def read_u16(source, at): return octets.read_u16(source, at)
        def read_u32(source, at): return octets.read_u32(source, at)
        def read_u64(source, at): return octets.read_u64(source, at)
        def mirror_u64(value): return octets.mirror_u64(value)
        def write_u16(target, at, value): octets.write_u16(target, at, value)
        def write_u32(target, at, value): octets.write_u32(target, at, value)
        def write_u64(target, at, value): octets.write_u64(target, at, value)
        def copy(target, at, source, start, count): octets.copy(target, at, source, start, count)
        def take_bytes(source, start, count): return octets.take_bytes(source, start, count)
        def put_bytes(target, at, source): octets.put_bytes(target, at, source)
        """,
    "router/amqp/door.pxd": """
        from router.amqp cimport octets

        cpdef read_u16(const unsigned char[::1] source, Py_ssize_t at)
        cpdef read_u32(const unsigned char[::1] source, Py_ssize_t at)
        cpdef read_u64(const unsigned char[::1] source, Py_ssize_t at)
        cpdef mirror_u64(unsigned long long value)
        cpdef write_u16(unsigned char[::1] target, Py_ssize_t at, unsigned int value)
        cpdef write_u32(unsigned char[::1] target, Py_ssize_t at, unsigned int value)
        cpdef write_u64(unsigned char[::1] target, Py_ssize_t at, unsigned long long value)
        cpdef copy(unsigned char[::1] target, Py_ssize_t at,
                   const unsigned char[::1] source, Py_ssize_t start, Py_ssize_t count)
        cpdef take_bytes(const unsigned char[::1] source, Py_ssize_t start, Py_ssize_t count)
        cpdef put_bytes(unsigned char[::1] target, Py_ssize_t at, bytes source)
        """,
}


@pytest.fixture(scope="module", params=["interpreted", "compiled"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the functions under test, interpreted or compiled."""
    return octets if request.param == "interpreted" else _compiled(tmp_path_factory.mktemp("door"))


def _compiled(folder: Path) -> ModuleType:
    tree = write_tree(folder / "tree", DOOR)
    for name in ("octets.py", "octets.pxd"):
        shutil.copy(ROOT / "router" / "amqp" / name, tree / "router" / "amqp")
    out = folder / "out"
    out.mkdir()
    sanitized = (build.record(Path(build.__file__).parent) or {}).get("sanitized")
    # the sanitizers are for the door, not for the compiler
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [sys.executable, str(COMPILE), str(tree / "router"), str(out), "router.amqp.door"],
        env={**environment, "TRIOUTE_SANITIZE": "1" if sanitized else "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode == NO_COMPILER_EXIT:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stdout
    (built,) = out.rglob("door*.so")
    spec = importlib.util.spec_from_file_location("router.amqp.door", built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MEMORY = bytes.fromhex("00 01 7f 80 ff fe 10 20 30 40")


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_numbers_are_read_in_network_order(door: Any, size: int, kind: Any) -> None:
    source = kind(MEMORY)
    read = getattr(door, f"read_u{size * 8}")
    for at in range(len(MEMORY) - size + 1):
        assert read(source, at) == int.from_bytes(MEMORY[at : at + size], "big")


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("length", range(11))
def test_nothing_is_read_outside(door: Any, size: int, length: int) -> None:
    source = memoryview(MEMORY)[:length]
    for at in (-(2**62), -8, -1, length - size + 1, length, length + 1, 2**31, 2**62):
        if 0 <= at <= length - size:
            continue
        with pytest.raises(IndexError, match=f"^{size} octets at {at} are outside of {length}$"):
            getattr(door, f"read_u{size * 8}")(source, at)


@pytest.mark.parametrize("value", [0, 1, 0xFF, 0x0102030405060708, 2**63, 2**64 - 1])
def test_a_word_is_mirrored(door: Any, value: int) -> None:
    assert door.mirror_u64(value) == int.from_bytes(value.to_bytes(8, "little"), "big")
    assert door.mirror_u64(door.mirror_u64(value)) == value


@pytest.mark.parametrize(
    ("size", "values"),
    [
        (2, [0, 1, 0x1234, 0xFFFF]),
        (4, [0, 2**32 - 1, 258]),
        (8, [0, 2**64 - 1, 0x0102 << 40]),
    ],
)
def test_numbers_are_written_in_network_order(door: Any, size: int, values: list[int]) -> None:
    for value in values:
        for at in range(10 - size + 1):
            target = bytearray(b"\xaa" * 10)
            getattr(door, f"write_u{size * 8}")(memoryview(target), at, value)
            expected = bytearray(b"\xaa" * 10)
            expected[at : at + size] = value.to_bytes(size, "big")
            assert target == expected


@pytest.mark.parametrize("size", [2, 4, 8])
def test_nothing_is_written_outside(door: Any, size: int) -> None:
    target = bytearray(10)
    for at in (-(2**62), -1, 10 - size + 1, 10, 2**62):
        with pytest.raises(IndexError):
            getattr(door, f"write_u{size * 8}")(memoryview(target), at, 1)
    assert target == bytes(10)


@pytest.mark.parametrize("at", [-1, 0, 3, 6, 7])
@pytest.mark.parametrize("start", [-1, 0, 2, 5, 6])
@pytest.mark.parametrize("count", [-1, 0, 1, 3, 5, 6, 2**62])
def test_a_copy_stays_inside_of_both(door: Any, at: int, start: int, count: int) -> None:
    source, target = b"abcde", bytearray(6)
    inside = at >= 0 and start >= 0 and count >= 0 and at + count <= 6 and start + count <= 5
    expected = bytearray(6)
    if inside:
        door.copy(memoryview(target), at, source, start, count)
        expected[at : at + count] = source[start : start + count]
    else:
        with pytest.raises(IndexError):
            door.copy(memoryview(target), at, source, start, count)
    assert target == expected


def test_nothing_can_be_copied_from_and_to_nothing(door: Any) -> None:
    door.copy(memoryview(bytearray(0)), 0, b"", 0, 0)


@pytest.mark.parametrize("start", [-1, 0, 2, 5, 6])
@pytest.mark.parametrize("count", [-1, 0, 1, 3, 5, 6, 2**62])
def test_what_is_taken_out_lies_inside(door: Any, start: int, count: int) -> None:
    source = b"abcde"
    if start >= 0 and count >= 0 and start + count <= 5:
        assert door.take_bytes(source, start, count) == source[start : start + count]
    else:
        with pytest.raises(IndexError):
            door.take_bytes(source, start, count)


@pytest.mark.parametrize("at", [-1, 0, 3, 6, 7])
@pytest.mark.parametrize("source", [b"", b"a", b"abc", b"abcdef", b"abcdefg"])
def test_what_is_put_in_lies_inside(door: Any, at: int, source: bytes) -> None:
    target, expected = bytearray(6), bytearray(6)
    if at >= 0 and at + len(source) <= 6:
        door.put_bytes(memoryview(target), at, source)
        expected[at : at + len(source)] = source
    else:
        with pytest.raises(IndexError):
            door.put_bytes(memoryview(target), at, source)
    assert target == expected
