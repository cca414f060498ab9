"""Measure the code base: sizes, docstrings, comments, `Any`, and import cycles.

    python docs/figures.py [ROOT]

Counts the Python files of `router/` and `plugins/` with more than two lines. `Any` is counted as a
word in the code, comments per 100 lines, and cycles as groups of modules that import each other.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

# after the path that they are found by
from support.house.imports import imported_modules  # noqa: E402
from support.house.sources import dotted, line_count, python_files  # noqa: E402

LEAST_LINES = 3
OPENINGS = ("What", "Whether", "Who", "Whose", "How", "Why", "Which", "Where", "It", "Its", "There")
"""First words of docstrings that say something about the object, not what it does."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Figures:
    """Counts over some files."""

    lines: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    public: int = 0
    documented: int = 0
    openings: Counter[str] = field(default_factory=Counter)
    comments: int = 0
    any_words: int = 0

    def add(self, text: str) -> None:
        """Add a file."""
        tree = ast.parse(text)
        self.lines.append(text.count("\n"))
        for node in ast.walk(tree):
            if isinstance(node, Function):
                self.functions.append((node.end_lineno or node.lineno) - node.lineno + 1)
            if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
                self.public += 1
                self.documented += ast.get_docstring(node) is not None
            if isinstance(node, Function | ast.ClassDef | ast.Module):
                self.openings[first_word(ast.get_docstring(node))] += 1
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            self.comments += token.type == tokenize.COMMENT
            self.any_words += token.type == tokenize.NAME and token.string == "Any"

    def row(self, name: str) -> str:
        """Return the figures as a row of a Markdown table."""
        total = sum(self.lines)
        written = self.openings.total() - self.openings[""]
        odd = sum(self.openings[word] for word in OPENINGS)
        p95 = statistics.quantiles(self.functions, n=20)[-1] if len(self.functions) > 1 else 0
        cells = (
            name,
            f"{len(self.lines)}",
            f"{total:,}",
            f"{statistics.median(self.lines):.0f}",
            f"{max(self.lines)}",
            f"{len(self.functions) / len(self.lines):.1f}",
            f"{p95:.0f}",
            f"{100 * self.documented / max(1, self.public):.0f}",
            f"{100 * odd / max(1, written):.1f}",
            f"{100 * self.comments / total:.1f}",
            f"{1000 * self.any_words / total:.1f}",
        )
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| | files | lines | median | longest | functions a file | p95 function | documented % "
    "| odd openings % | comments | `Any` |\n|---|" + "---:|" * 10
)


def first_word(docstring: str | None) -> str:
    """Return the first word of a docstring, or an empty text."""
    found = re.match(r"\w+", docstring or "")
    return found[0] if found else ""


def sources(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the package, the dotted name and the text of each file that counts."""
    for path in python_files(root, "router", "plugins"):
        text = path.read_text(encoding="utf-8")
        if line_count(path) >= LEAST_LINES:
            name = path.relative_to(root).as_posix()
            folders = name.split("/")[:-1]
            # the folder of a plugin holds its package, which others import
            module = dotted("/".join(name.split("/")[2:]) if folders[0] == "plugins" else name)
            yield "/".join(folders[:2]), module, text


def imported(module: str, text: str, modules: frozenset[str]) -> set[str]:
    """Return the modules among `modules` that a module imports when it is loaded."""
    tree = ast.parse(text)
    at_load = ast.Module(
        [each for each in tree.body if isinstance(each, ast.Import | ast.ImportFrom)], []
    )
    names = {name for _, name in imported_modules(at_load, module, package=False)}
    # `from a import b` yields the package as well, which is imported for its module's sake
    nested = {name.rpartition(".")[0] for name in names & modules}
    return (names & modules) - nested - {module}


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, by Tarjan's algorithm."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        numbers[name] = lowest[name] = len(numbers)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in numbers:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == numbers[name]:
            at = stack.index(name)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in numbers:
            visit(name)
    return found


def lines(root: Path) -> Iterator[str]:
    """Yield the lines of the report: figures of each package, of all, and the import cycles."""
    total, by_package = Figures(), dict[str, Figures]()
    texts = {}
    for package, module, text in sources(root):
        texts[module] = text
        total.add(text)
        by_package.setdefault(package, Figures()).add(text)
    yield HEAD
    for package, figures in by_package.items():
        yield figures.row(package)
    yield total.row("**all**")
    modules = frozenset(texts)
    found = cycles({name: imported(name, text, modules) for name, text in texts.items()})
    yield f"\nImport cycles: {len(found)}"
    for group in found:
        yield f"- {', '.join(group)}"


if __name__ == "__main__":
    here = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    sys.stdout.writelines(f"{line}\n" for line in lines(here))
