"""Public names are documented, no except swallows everything, no test waits for the clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.house import code
from support.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]

MOST_ANY = 6

BOUNDARIES = frozenset(
    {
        # One connection ends, even by a mistake of ours, and the others never notice.
        "router/net/listeners.py:run_guarded",
        # The same for a WebSocket, which a library serves before there is a connection.
        "router/net/websockets/client.py:carry",
        "router/net/websockets/server.py:_serve",
        # The same for HTTP, which another library speaks.
        "router/metrics/http.py:_speak",
        # The same in another's turn: the connection at fault ends, not the one whose turn it is.
        "router/net/pump.py:_guarded",
        # The same in work that belongs to no single connection, which a peer may have caused.
        "router/net/router_hub.py:guarded",
        # One request is answered with 500, even by a mistake of ours, and the next one is answered.
        "router/management/agent.py:_answered",
        # A plugin's code may raise anything. The plugin is stopped, and the router goes on.
        "router/config/plugin_classes.py:load",
        "router/config/plugin_classes.py:read_settings",
        "router/config/plugin_classes.py:with_absolute_paths",
        "router/errors.py:describe_exception",
        # Here only the call ends: a peer must not be able to stop a plugin.
        "router/hosting/callouts.py:_ask",
        "router/hosting/callouts.py:_mechanisms",
        "router/hosting/host.py:_last_lines",
        "router/hosting/host.py:_run_one",
        # Nor does a mistake of ours in what only plugins see end anything else.
        "router/hosting/observers.py:_pass_on",
        "router/hosting/metrics.py:collect",
        "router/management/entities/plugins.py:entities",
    }
)


def test_public_names_of_this_tree_are_documented() -> None:
    assert code.missing_docstrings(ROOT) == []


def test_interfaces_of_this_tree_are_typed() -> None:
    assert code.untyped(ROOT, MOST_ANY) == []


def test_a_package_with_many_untyped_words_is_found(tmp_path: Path) -> None:
    lines = "x = 1\n" * 998
    texts = {
        "router/good/x.py": f"from typing import Any\nx: Any\n{lines}",
        "router/bad/x.py": f"from typing import Any\nx: list[Any]\n{lines}",
        "router/bad/y.py": f"from typing import Any\nx: dict[Any, Any]  # not Any\n{lines}",
        "plugins/p/p/x.py": "'Any'\n",
    }
    assert code.untyped(write_tree(tmp_path, texts), 2) == [
        "router/bad: 2.5 words `Any` in 1,000 lines, more than 2"
    ]


def test_no_except_of_this_tree_swallows_everything() -> None:
    assert code.broad_excepts(ROOT, BOUNDARIES) == []


def test_no_test_of_this_tree_waits_for_the_clock() -> None:
    assert code.sleeps(ROOT) == []


@pytest.mark.parametrize(
    ("text", "undocumented"),
    [
        ("x = 1\n", ["the module has no docstring"]),
        ('"""M."""\ndef f(): ...\n', ["f has no docstring"]),
        ('"""M."""\nasync def f(): ...\n', ["f has no docstring"]),
        ('"""M."""\nclass C:\n    x: int = 1\n', ["C has no docstring"]),
        ('"""M."""\nclass C:\n    """C."""\n    def m(self): ...\n', ["m has no docstring"]),
        ('"""M."""\nif True:\n    def f(): ...\n', ["f has no docstring"]),
        (
            '"""M."""\ntry:\n    import x\nexcept ImportError:\n    def f(): ...\n',
            ["f has no docstring"],
        ),
        ("", []),
        ('"""M."""\ndef _f(): ...\nclass _C:\n    def m(self): ...\n', []),
        ('"""M."""\nclass C:\n    """C."""\n    def __init__(self): ...\n', []),
        ('"""M."""\ndef f():\n    """F."""\n    def inner(): ...\n', []),
        ('"""M."""\n@typing.overload\ndef f(x): ...\ndef f(x):\n    """F."""\n', []),
        ('"""M."""\nclass C:\n    """C."""\n    @x.setter\n    def x(self, value): ...\n', []),
    ],
)
def test_missing_docstrings_are_found(tmp_path: Path, text: str, undocumented: list[str]) -> None:
    tree = write_tree(tmp_path, {"router/x.py": text})
    assert [line.split(": ", 1)[1] for line in code.missing_docstrings(tree)] == undocumented


def test_a_protocol_documents_its_implementations(tmp_path: Path) -> None:
    text = """
        '''M.'''

        class Kind(Protocol):
            '''A kind.'''

            def read(self):
                '''Read it.'''

            def words(self): ...

        class Flag:
            '''A flag.'''

            def read(self): ...
            def words(self): ...

        def read(): ...
        """
    assert code.missing_docstrings(write_tree(tmp_path, {"router/x.py": text})) == [
        "router/x.py:9: words has no docstring",
        "router/x.py:15: words has no docstring",
        "router/x.py:17: read has no docstring",
    ]


@pytest.mark.parametrize("folder", ["router", "tests", "deploy", "plugins/one"])
@pytest.mark.parametrize(
    "clause",
    [
        "except:",
        "except Exception:",
        "except BaseException as error:",
        "except (ValueError, Exception):",
        "except builtins.Exception:",
        "except* Exception:",
    ],
)
def test_a_broad_except_is_found(tmp_path: Path, folder: str, clause: str) -> None:
    tree = write_tree(tmp_path, {f"{folder}/x.py": f"try:\n    f()\n{clause}\n    pass\n"})
    assert len(code.broad_excepts(tree)) == 1


def test_a_named_boundary_is_taken(tmp_path: Path) -> None:
    guarded = "def guarded():\n    try:\n        f()\n    except Exception:\n        log()\n"
    tree = write_tree(tmp_path, {"router/x.py": guarded, "router/y.py": guarded})
    assert code.broad_excepts(tree, {"router/x.py:guarded"}) == ["router/y.py:4: catches Exception"]


def test_a_broad_suppress_is_found(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path, {"router/x.py": "with contextlib.suppress(OSError, Exception):\n    f()\n"}
    )
    assert code.broad_excepts(tree) == ["router/x.py:1: catches Exception"]


def test_tidying_up_after_everything_is_taken(tmp_path: Path) -> None:
    text = "try:\n    f()\nexcept BaseException:\n    tidy()\n    raise\n"
    assert code.broad_excepts(write_tree(tmp_path, {"router/x.py": text})) == []


def test_a_narrow_except_is_taken(tmp_path: Path) -> None:
    text = "try:\n    f()\nexcept (OSError, errors.AmqpError):\n    raise Exception from None\n"
    assert code.broad_excepts(write_tree(tmp_path, {"router/x.py": text})) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.sleep(0.1)\n",
        "import time\ntime.sleep(0)\n",
        "from time import sleep as nap\nnap(1)\n",
        "import trio\nasync def test(): await trio.sleep(0.01)\n",
        "import trio as t\nasync def test(): await t.sleep(delay)\n",
        "from trio import sleep\nasync def test(): await sleep(1)\n",
        "import trio\nasync def test(): await trio.sleep_until(5)\n",
        "import asyncio\nasync def test(): await asyncio.sleep(1)\n",
    ],
)
def test_a_sleep_is_found(tmp_path: Path, text: str) -> None:
    assert len(code.sleeps(write_tree(tmp_path, {"tests/net/test_x.py": text}))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "import trio\nasync def test(): await trio.sleep(0)\n",
        "import trio\nasync def test(): await trio.sleep_forever()\n",
        "import trio\nasync def test(autojump_clock): await trio.sleep(60)\n",
        "import trio\nasync def test(*, mock_clock):\n    async def f(): await trio.sleep(60)\n",
        "class Fake:\n    def sleep(self, s): ...\nFake().sleep(3)\n",
    ],
)
def test_waiting_for_no_clock_is_taken(tmp_path: Path, text: str) -> None:
    assert code.sleeps(write_tree(tmp_path, {"tests/net/test_x.py": text})) == []
