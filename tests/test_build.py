"""Reports of `router.build` on each layout of packages that a build can leave."""

from __future__ import annotations

import json
from pathlib import Path

from router import build

from support.trees import EXTENSION, write_tree

SOURCES = {
    "router/__init__.py": "",
    "router/node.py": "",
    "router/amqp/decode.py": "x = 1\n",
    "router/amqp/decode.pxd": "",
    "router/core/forwarding/forward.py": "",
    "router/core/forwarding/forward.pxd": "",
}


def package(root: Path, *compiled: str) -> Path:
    """Lay out a package; `compiled` names the modules that get an extension module beside them."""
    write_tree(root, SOURCES)
    for module in compiled:
        (root / (module.replace(".", "/") + EXTENSION)).touch()
    return root / "router"


def record(package_dir: Path, **contents: object) -> None:
    (package_dir / build.RECORD_NAME).write_text(json.dumps(contents), encoding="utf-8")


def test_hot_modules_are_those_with_a_pxd(tmp_path: Path) -> None:
    router = package(tmp_path)
    (router / "amqp" / "shared_types.pxd").touch()  # declarations only: there is nothing to compile
    assert build.hot_modules(router) == ["router.amqp.decode", "router.core.forwarding.forward"]


def test_a_pxd_with_the_bodies_themselves_is_compiled_into_its_users(tmp_path: Path) -> None:
    router = package(tmp_path)
    write_tree(
        router,
        {
            "amqp/octets.py": "def read_u16(source, at): ...\n",
            "amqp/octets.pxd": "cdef inline int read_u16(source, at) except? 1:\n    ...\n",
            "amqp/cursor.py": "def advance(): ...\n",
            "amqp/cursor.pxd": "cdef inline bint outside(size, at):\n    ...\n",
        },
    )
    assert "router.amqp.octets" not in build.hot_modules(router)
    assert "router.amqp.cursor" in build.hot_modules(router)


def test_sources_alone_are_interpreted(tmp_path: Path) -> None:
    router = package(tmp_path)
    assert build.compiled_modules(router) == []
    assert build.data_plane(router) == "interpreted"


def test_all_hot_modules_compiled(tmp_path: Path) -> None:
    router = package(tmp_path, "router.amqp.decode", "router.core.forwarding.forward")
    assert build.data_plane(router) == "compiled"


def test_some_hot_modules_compiled(tmp_path: Path) -> None:
    router = package(tmp_path, "router.core.forwarding.forward")
    assert build.compiled_modules(router) == ["router.core.forwarding.forward"]
    assert build.data_plane(router) == "mixed"


def test_an_extension_for_another_python_is_not_this_build(tmp_path: Path) -> None:
    router = package(tmp_path)
    (router / "core" / "forward.cpython-27-vax.so").touch()
    assert build.data_plane(router) == "interpreted"


def test_a_package_without_hot_modules_is_interpreted(tmp_path: Path) -> None:
    router = write_tree(tmp_path, {"router/__init__.py": ""}) / "router"
    assert build.data_plane(router) == "interpreted"


def test_source_hashes_follow_contents_and_names(tmp_path: Path) -> None:
    router = package(tmp_path)
    before = build.source_hashes(router)
    assert sorted(before) == sorted(name.removeprefix("router/") for name in SOURCES)
    (router / "amqp" / "decode.py").write_text("x = 2\n", encoding="utf-8")
    after = build.source_hashes(router)
    assert [name for name in before if before[name] != after[name]] == ["amqp/decode.py"]


def test_a_source_tree_has_no_record_and_owes_no_notice(tmp_path: Path) -> None:
    router = package(tmp_path)
    assert build.record(router) is None
    assert build.notice(router) == ""
    assert "data plane: interpreted;" in build.describe(router)


def test_an_uncompiled_installation_says_why_and_what_it_costs(tmp_path: Path) -> None:
    router = package(tmp_path)
    record(router, why="no C compiler found")
    assert build.notice(router) == f"trioute: no C compiler found, {build.COST}"
    assert "\n" not in build.notice(router)
    assert "data plane: interpreted, no C compiler found;" in build.describe(router)


def test_a_sanitized_build_says_so(tmp_path: Path) -> None:
    router = package(tmp_path, "router.amqp.decode", "router.core.forwarding.forward")
    record(router, why="", sanitized=True)
    assert build.notice(router) == ""
    assert "data plane: compiled, sanitized;" in build.describe(router)


def test_a_quick_build_says_so(tmp_path: Path) -> None:
    router = package(tmp_path, "router.amqp.decode", "router.core.forwarding.forward")
    record(router, why="", compiled=["router.amqp.decode"], quick=True)
    assert "data plane: compiled, quick build;" in build.describe(router)


def test_the_running_build_describes_itself() -> None:
    line = build.describe()
    assert line.startswith(f"trioute {build.version()} (data plane: {build.data_plane()}")
    assert "\n" not in line
