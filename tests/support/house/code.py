"""Rules on the code inside the files: docstrings, exceptions, sleeps."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from support.house.sources import parsed, python_files

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_TOO_BROAD = frozenset({"Exception", "BaseException"})
_CLOCK_FIXTURES = frozenset({"autojump_clock", "mock_clock"})


def missing_docstrings(root: Path) -> list[str]:
    """Return each module, public class, public function and public method without a docstring.

    Not asked of: dunder methods, overloads, setters, overriding methods marked `@override`,
    methods that a Protocol of the same module documents, and anything inside a function or a
    private class.
    """
    offences = []
    for name, tree in parsed(root, "router", "plugins"):
        if tree.body and ast.get_docstring(tree) is None:
            offences.append(f"{name}:1: the module has no docstring")
        agreed = _documented_by_protocols(tree)
        offences += [
            f"{name}:{node.lineno}: {node.name} has no docstring"
            for parent, node in _public(tree)
            if ast.get_docstring(node) is None
            and not (isinstance(parent, ast.ClassDef) and node.name in agreed)
        ]
    return offences


def _documented_by_protocols(tree: ast.Module) -> set[str]:
    """Return the names of the methods whose meaning a Protocol of this module sets down."""
    return {
        node.name
        for parent, node in _public(tree)
        if isinstance(parent, ast.ClassDef)
        and any(_last_name(base) == "Protocol" for base in parent.bases)
        and ast.get_docstring(node) is not None
    }


def _public(parent: ast.Module | ast.ClassDef) -> Iterator[tuple[ast.AST, Definition]]:
    """Yield (parent, definition) for the public definitions of a module and its public classes."""
    for node in _flat(parent.body):
        if not isinstance(node, Definition) or node.name.startswith("_") or _speaks_elsewhere(node):
            continue
        yield parent, node
        if isinstance(node, ast.ClassDef):
            yield from _public(node)


def _flat(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block and, in place of `if` and `try`, those inside them."""
    for statement in statements:
        if isinstance(statement, ast.If):
            yield from _flat(statement.body + statement.orelse)
        elif isinstance(statement, ast.Try):
            handlers = [line for handler in statement.handlers for line in handler.body]
            yield from _flat(statement.body + handlers + statement.orelse + statement.finalbody)
        else:
            yield statement


def _speaks_elsewhere(node: Definition) -> bool:
    """Tell whether another definition of the same name carries the docstring."""
    for decorator in node.decorator_list:
        name = (
            decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
        )
        if name in {"overload", "override", "setter", "deleter"}:
            return True
    return False


def broad_excepts(root: Path, boundaries: Collection[str] = ()) -> list[str]:
    """Return each bare `except`, `except Exception` and `suppress(Exception)` of the whole tree.

    A handler whose last line is a bare `raise` tidies up and lets everything through: it is taken.
    `boundaries` names, as `path:function`, the places at which a mistake of ours ends one thing
    and spares the rest.
    """
    offences = []
    for name, tree in parsed(root, "router", "plugins", "tests", "deploy"):
        for node in _outside(tree, name, boundaries):
            if isinstance(node, ast.ExceptHandler):
                if isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None:
                    continue
                if node.type is None:
                    offences.append(f"{name}:{node.lineno}: bare except")
                    continue
                caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            elif isinstance(node, ast.Call) and _last_name(node.func) == "suppress":
                caught = node.args
            else:
                continue
            offences += [
                f"{name}:{node.lineno}: catches {_last_name(one)}"
                for one in caught
                if _last_name(one) in _TOO_BROAD
            ]
    return offences


def _outside(node: ast.AST, name: str, boundaries: Collection[str]) -> Iterator[ast.AST]:
    """Yield every node of a file except those inside the functions that `boundaries` names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition) and f"{name}:{child.name}" in boundaries:
            continue
        yield child
        yield from _outside(child, name, boundaries)


def sleeps(root: Path) -> list[str]:
    """Return each sleep of the tests that waits for the wall clock.

    `sleep(0)` and `sleep_forever` wait for no clock. A sleep under Trio's mock clock does not
    either: it is allowed inside a function that takes the fixture `autojump_clock` or `mock_clock`.
    Benchmarks, which are not tests, may last as long as they like.
    """
    offences = []
    for name, tree in parsed(root, "tests"):
        if name.startswith("tests/bench/"):
            continue
        aliases = dict(_sleep_names(tree))
        for node in _outside_mock_clocks(tree):
            if not isinstance(node, ast.Call):
                continue
            called = aliases.get(ast.unparse(node.func))
            if called is None or (called == "trio.sleep" and _is_zero(node)):
                continue
            offences.append(f"{name}:{node.lineno}: {called} waits for the clock")
    return offences


def _sleep_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (name as written in this module, what it is) for each function that sleeps."""
    functions = {
        "time": ("sleep",),
        "trio": ("sleep", "sleep_until"),
        "asyncio": ("sleep",),
        "anyio": ("sleep",),
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                for function in functions.get(alias.name, ()):
                    yield f"{alias.asname or alias.name}.{function}", f"{alias.name}.{function}"
        elif isinstance(node, ast.ImportFrom) and node.module in functions:
            for alias in node.names:
                if alias.name in functions[node.module]:
                    yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _outside_mock_clocks(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every node except those inside functions that run on a mock clock."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = child.args.posonlyargs + child.args.args + child.args.kwonlyargs
            if _CLOCK_FIXTURES & {parameter.arg for parameter in parameters}:
                continue
        yield child
        yield from _outside_mock_clocks(child)


def _is_zero(call: ast.Call) -> bool:
    """Tell whether the call's only argument is the number 0."""
    return (
        len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    )


def _last_name(node: ast.expr) -> str:
    """Return `Exception` for `Exception`, `builtins.Exception`, `Exception[T]` and the like."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def untyped(root: Path, most: float) -> list[str]:
    """Return every package with more than `most` words `Any` in a thousand lines.

    Packages are those below `router/`, its own modules together, and the plugins.
    """
    words: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in python_files(root, "router", "plugins"):
        parts = path.relative_to(root).parts
        package = "/".join(parts[:2]) if len(parts) > 2 else parts[0]
        text = path.read_text(encoding="utf-8")
        lines[package] += text.count("\n")
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        words[package] += sum(
            each.type == tokenize.NAME and each.string == "Any" for each in tokens
        )
    rates = {package: 1000 * words[package] / max(1, lines[package]) for package in lines}
    return [
        f"{package}: {rate:.1f} words `Any` in 1,000 lines, more than {most:g}"
        for package, rate in sorted(rates.items())
        if rate > most
    ]
