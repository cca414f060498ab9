"""Compile the data plane: modules `x.py` of a package, each with its types in `x.pxd` beside it.

Run by the build hook in a process of its own:

    python compile.py PACKAGE_DIR OUT_DIR MODULE ...

The package is copied aside first, so that no C file, object file or extension module ever lies in
the source tree, where it would shadow its own source. Everything that decides how the C is made and
compiled stands in this file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

DIRECTIVES: Final[dict[str, Any]] = {
    "language_level": 3,
    # Annotations speak to mypy, the .pxd speaks to the compiler.
    "annotation_typing": False,
    # What arrives from the network decides indices, so every index is checked ...
    "boundscheck": True,
    # ... and a negative one is not an index: nothing in the data plane counts from the end.
    "wraparound": False,
    # Measured per forwarded message (about 130 ns): leaving out this check, or that of indices, or
    # dividing as C does, changes less than moving code about does. All stay as safe as Python.
    "initializedcheck": True,
    "cdivision": False,
    "embedsignature": True,
}

# Larger limits for inlining make it a twentieth faster, and compiling takes twice as long
# (docs/decisions/0024). -g0 undoes the -g of Python's own flags, which is a fifth of the time.
OPTIMISED: Final = ["-O3", "-fno-plt", "-g0"]

# In half of the time; a message then costs up to a tenth more processor time.
QUICK: Final = ["-O1", "-fno-plt", "-g0"]

SANITIZED: Final = [
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    # A first finding ends the process: the fuzz target must not run on with damaged memory.
    "-fno-sanitize-recover=undefined",
]

PROBE: Final = "#include <Python.h>\nint trioute_probe(void) { return Py_IsInitialized(); }\n"

SOURCES: Final = ("*.py", "*.pxd")


def missing_tool() -> str:
    """Say in a few words what stands in the way of compiling an extension module, or return ""."""
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext
    from setuptools.extension import Extension

    with tempfile.TemporaryDirectory(prefix="trioute-probe-") as scratch:
        source = Path(scratch, "trioute_probe.c")
        source.write_text(PROBE, encoding="ascii")
        command = build_ext(
            Distribution({"ext_modules": [Extension("trioute_probe", [str(source)])]})
        )
        command.build_temp = command.build_lib = scratch
        failures = _compiler_errors()
        try:
            command.ensure_finalized()
            command.run()
        except failures:
            header = Path(sysconfig.get_path("include"), "Python.h")
            compilers = (os.environ.get("CC", "").split(" ")[0], "cc", "gcc", "clang", "cl")
            if any(name and shutil.which(name) for name in compilers) and not header.is_file():
                return "no Python headers found"
            return "no C compiler found"
    return ""


def _compiler_errors() -> tuple[type[BaseException], ...]:
    """Return what is raised where a compiler is missing, or refuses what it is given."""
    from Cython.Compiler.Errors import CompileError
    from setuptools.errors import BaseError, CCompilerError

    return (BaseError, CCompilerError, CompileError, OSError)


def compile_modules(
    package_dir: Path, out_dir: Path, names: list[str], flags: list[str]
) -> list[Path]:
    """Compile the named modules of a package into `out_dir`, laid out as the package is.

    `flags` are those of the C compiler: `OPTIMISED`, `QUICK` or `SANITIZED`.

    Returns the paths of the extension modules, relative to `out_dir`. Any error of Cython or of the
    C compiler passes through: where a compiler works, code that does not compile is a fault to be
    seen.
    """
    from Cython.Build import cythonize
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext
    from setuptools.extension import Extension

    copy = Path(tempfile.mkdtemp(prefix="sources-", dir=out_dir.parent), package_dir.name)
    for pattern in SOURCES:
        for source in package_dir.rglob(pattern):
            target = copy / source.relative_to(package_dir)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    os.chdir(copy.parent)

    windows = sys.platform == "win32"
    extensions = [
        Extension(
            name,
            [name.replace(".", "/") + ".py"],
            extra_compile_args=[] if windows else [*flags, "-w"],
            extra_link_args=flags if flags is SANITIZED and not windows else [],
        )
        for name in names
    ]
    modules = cythonize(  # type: ignore[no-untyped-call]
        extensions,
        include_path=[str(copy.parent)],
        compiler_directives=DIRECTIVES,
        build_dir=str(out_dir.parent / "c"),
        nthreads=os.cpu_count() or 1,
        quiet=True,
    )
    command = build_ext(Distribution({"ext_modules": modules}))
    command.build_temp = str(out_dir.parent / "objects")
    command.build_lib = str(out_dir)
    command.parallel = os.cpu_count()
    command.ensure_finalized()
    command.run()
    return sorted(Path(path).relative_to(out_dir) for path in command.get_outputs())


@contextlib.contextmanager
def progress(folder: Path, modules: int) -> Iterator[None]:
    """Write to the file that TRIOUTE_PROGRESS names how far the work in a folder is.

    The file has three numbers: of modules translated to C, of modules compiled, and of all modules.
    """
    file = os.environ.get("TRIOUTE_PROGRESS")
    if not file:
        yield
        return
    is_over = threading.Event()

    def report() -> None:
        while not is_over.wait(0.5):
            made = (len(list(folder.rglob(f"*.{kind}"))) for kind in ("c", "o"))
            Path(file).write_text(" ".join(map(str, (*made, modules))), encoding="ascii")

    reporter = threading.Thread(target=report)
    reporter.start()
    try:
        yield
    finally:
        is_over.set()
        reporter.join()


def main(arguments: list[str]) -> int:
    """Compile as the command line says; return 0, or 3 where there is no working compiler."""
    package_dir, out_dir = (Path(argument).resolve() for argument in arguments[:2])
    missing = missing_tool()
    if missing:
        print(missing)
        return 3
    flags = OPTIMISED
    if os.environ.get("TRIOUTE_SANITIZE") == "1":
        flags = SANITIZED
    elif os.environ.get("TRIOUTE_QUICK") == "1":
        flags = QUICK
    names = arguments[2:]
    try:
        with progress(out_dir.parent, len(names)):
            made = compile_modules(package_dir, out_dir, names, flags)
        print(*made, sep="\n")
    except _compiler_errors() as error:
        # Cython and the C compiler have said what and where; how we got there helps nobody.
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
