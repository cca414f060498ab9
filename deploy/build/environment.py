"""Make sure that a virtual environment exists and holds this tree as it is now.

    python3 environment.py .venv-test --build compiled --extra test

Runs on a bare Python: standard library only. The environment is remade when its interpreter
changes, its dependencies are installed again when pyproject.toml changes, and the tree is built
into it again when any of its sources changes. Builds:

    auto         compiled where that is possible, else interpreted, saying what that costs
    quick        as auto, but compiled in half of the time, with fewer optimisations
    compiled     compiled, or an error
    interpreted  the same files, uncompiled
    sanitized    compiled with address and undefined-behaviour checks
    editable     interpreted, straight from the tree
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SWITCHES = {
    "auto": {},
    "quick": {"TRIOUTE_QUICK": "1"},
    "compiled": {"TRIOUTE_COMPILE": "1"},
    "interpreted": {"TRIOUTE_COMPILE": "0"},
    "sanitized": {"TRIOUTE_COMPILE": "1", "TRIOUTE_SANITIZE": "1"},
    "editable": {"TRIOUTE_COMPILE": "0"},
}

STATE = ".trioute.json"
PLUGIN_STATE = ".trioute-plugins.json"


def digest(paths: list[Path]) -> str:
    """Return one hash over the files' names and contents."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.relative_to(ROOT)}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def tree_sources() -> list[Path]:
    """Return every file that goes into the wheel or decides how it is built."""
    found = [path for path in (ROOT / "deploy" / "build").glob("*.py") if path != Path(__file__)]
    return found + sources_in(ROOT / "router")


def sources_in(folder: Path) -> list[Path]:
    """Return every file in a folder, but for what is made from others."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".so", ".pyc"}
    ]


def oldest(extra: str) -> list[str]:
    """Return a constraint `name==x.y` for each `name>=x.y` that pyproject.toml asks for.

    That is of the project itself, of the tools that build it, and of the optional dependencies.
    """
    contents = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = contents["project"]
    asked = contents["build-system"]["requires"] + project["dependencies"]
    asked += project["optional-dependencies"].get(extra, [])
    matches = [re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", each) for each in asked]
    return sorted({f"{match[1]}=={match[2]}" for match in matches if match})


def apt_install(packages: list[str]) -> bool:
    """Install Debian packages if we may; return whether that was tried and worked."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    print(f"installing {' '.join(packages)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "-qq", "update"],
        ["apt-get", "-qq", "install", "-y", "--no-install-recommends", *packages],
    ):
        if subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, check=False
        ).returncode:
            return False
    return True


def need_venv() -> None:
    """Leave with a hint where this Python makes no virtual environments, as Debian's bare one."""

    def works() -> bool:
        # A fresh process: what apt-get has just installed is invisible to this one's import caches.
        check = [sys.executable, "-c", "import ensurepip, venv"]
        return subprocess.run(check, capture_output=True, check=False).returncode == 0

    if not works() and not (apt_install(["python3-venv"]) and works()):
        raise SystemExit(
            f"{sys.executable} has no venv module. On Debian: apt-get install python3-venv"
        )


def need_compiler(extra: str) -> None:
    """Try to get a C compiler and headers where they are missing; the build says if it failed."""
    packages = []
    if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        packages += ["gcc", "libc6-dev"]
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        packages += ["python3-dev"]
    if extra:
        # Proton, the suite's other peer, is built from source, and without these silently lacks TLS
        # and SASL. So is python-ldap, for the plugin router_auth_ldap.
        libraries = ["pkg-config", "--exists", "openssl", "libsasl2", "ldap"]
        if (
            shutil.which("pkg-config") is None
            or subprocess.run(libraries, capture_output=True, check=False).returncode
        ):
            packages += ["pkg-config", "libssl-dev", "libsasl2-dev", "libsasl2-modules"]
            packages += ["libldap-dev"]
    if packages and not apt_install(packages):
        print(f"not installed (Debian package names): {' '.join(packages)}", flush=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file or folder, against other processes that hold it in the same way."""
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def prepare(venv: Path, build: str, extra: str, *, use_oldest: bool) -> None:
    """Bring the environment up to date; see the module's docstring."""
    python = venv / "bin" / "python"
    wanted = {
        "python": f"{sys.version} {Path(sys.base_prefix).resolve()}",
        "dependencies": f"{extra} {use_oldest} " + digest([ROOT / "pyproject.toml"]),
        "tree": f"{build} " + ("" if build == "editable" else digest(tree_sources())),
    }
    state = venv / STATE
    found = json.loads(state.read_text(encoding="utf-8")) if state.is_file() else {}
    if found == wanted:
        return
    if {**found, "tree": ""} == {**wanted, "tree": ""}:
        # should the tree not compile, the rest is still as it has to be
        state.write_text(json.dumps({**wanted, "tree": ""}), encoding="utf-8")
    else:
        state.unlink(missing_ok=True)

    if found.get("python") != wanted["python"] or not python.exists():
        # apt-get fails if another one runs, also one that a script of this folder has started
        with locked(ROOT):
            need_venv()
            if build not in ("auto", "quick") or extra:
                need_compiler(extra)
        print(f"making {venv.name} ({build})", flush=True)
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        found = {}
    elif extra and found.get("dependencies") != wanted["dependencies"]:
        # what is new among them may need another library
        with locked(ROOT):
            need_compiler(extra)

    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    environment = {**os.environ, **SWITCHES[build]}
    environment.pop("PYTHONPATH", None)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        command = [*pip, "install"]
        if use_oldest:
            constraints.write("\n".join(oldest(extra)))
            constraints.flush()
            # For what is installed, and for the tools that build the tree; before 25.3 pip takes
            # the first for both.
            environment["PIP_CONSTRAINT"] = constraints.name
            environment["PIP_BUILD_CONSTRAINT"] = constraints.name
        if found.get("dependencies") == wanted["dependencies"]:
            print(f"building the tree into {venv.name} ({build})", flush=True)
            command += ["--no-deps", "--force-reinstall"]
            target = str(ROOT)
        else:
            print(f"installing the tree and what it needs into {venv.name} ({build})", flush=True)
            if found:
                subprocess.run([*pip, "uninstall", "--yes", "trioute"], check=True)
        command += ["--editable", target] if build == "editable" else [target]
        failure = run_and_report(command, environment)
    if failure:
        raise SystemExit(failure)
    state.write_text(json.dumps(wanted), encoding="utf-8")


def run_and_report(command: list[str], environment: dict[str, str]) -> int:
    """Run a command and report how much of the tree it has compiled; return its exit code."""
    is_live = sys.stdout.isatty()
    with tempfile.NamedTemporaryFile("r", prefix="trioute-progress-") as file:
        environment = {**environment, "TRIOUTE_PROGRESS": file.name}
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
        said = -1
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                failure = process.wait(1)
                break
            numbers = Path(file.name).read_text(encoding="ascii").split()
            if len(numbers) != 3:
                continue
            translated, compiled, modules = map(int, numbers)
            # on a terminal one line that grows, elsewhere a line for each quarter
            step = translated + compiled if is_live else (translated + compiled) * 2 // modules
            if step > said:
                said = step
                line = f"{modules} modules: {translated} translated to C, {compiled} compiled"
                print(f"\r{line}" if is_live else line, end="" if is_live else "\n", flush=True)
        if is_live and said >= 0:
            print()
    return failure


def prepare_plugins(venv: Path, names: list[str]) -> None:
    """Install plugins of this tree into an environment, with what they need."""
    folders = [ROOT / "plugins" / name for name in names]
    wanted = {"plugins": digest([path for folder in folders for path in sources_in(folder)])}
    state = venv / PLUGIN_STATE
    found = json.loads(state.read_text(encoding="utf-8")) if state.is_file() else {}
    if not folders or found == wanted:
        return
    print(f"installing {', '.join(names)} into {venv.name}", flush=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    install = [*pip, "--no-input", "install"]
    paths = [str(folder) for folder in folders]
    # the plugins anew, although their versions are the same; what they need, if it is not there
    for arguments in (["--force-reinstall", "--no-deps", *paths], paths):
        done = subprocess.run([*install, *arguments], stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise SystemExit(done.returncode)
    state.write_text(json.dumps(wanted), encoding="utf-8")


def main() -> None:
    """Read the command line, prepare the environment, and say which build it holds."""
    parser = argparse.ArgumentParser(description="Prepare a virtual environment with this tree.")
    parser.add_argument("venv", help="its folder, under the root of the tree")
    parser.add_argument("--build", choices=sorted(SWITCHES), default="auto")
    parser.add_argument(
        "--extra", default="", help="optional dependencies to install, such as: test"
    )
    parser.add_argument(
        "--oldest", action="store_true", help="take the oldest dependencies allowed"
    )
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="install plugins/NAME as well; may be repeated",
    )
    arguments = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036  (said before pip says it at length)
        raise SystemExit(f"Trioute needs Python 3.11 or later; this is {sys.version.split()[0]}")
    venv = ROOT / arguments.venv
    lock = venv.with_name(f"{venv.name}.lock")
    lock.touch()
    # Two makes at once must not install into one environment.
    with locked(lock):
        prepare(venv, arguments.build, arguments.extra, use_oldest=arguments.oldest)
        prepare_plugins(venv, arguments.plugin)
    # -I keeps the tree itself off the path: what is installed shall answer, not what lies here.
    subprocess.run([str(venv / "bin" / "python"), "-I", "-m", "router.build"], check=True)


if __name__ == "__main__":
    main()
