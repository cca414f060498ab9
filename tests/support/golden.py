"""Golden files: output of commands, with everything masked that changes from run to run.

A golden file holds commands, what each printed, and its exit code:

    $ trioute stat --links
    Links
    ...
    = 0

`pytest tests/cli/test_golden.py --update-golden` writes them anew; review the difference as any
other change. `MASKS` declares what is volatile by pattern, and `VOLATILE` by attribute. A mask is
as wide as what it covers, so that columns stay aligned.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from router import __version__

MASK: Final = "#"

# Attributes whose values are another each time, in CSV and JSON.
VOLATILE: Final = frozenset(
    {"uptimeSeconds", "memoryUsage", "residentMemoryUsage", "hostName", "version", "host"}
    # buffers of a connection are given back once it has been quiet for a while
    | {"memoryHeld", "memoryOutput"}
    | {"deliveriesDelayed1Sec", "lastDlvSeconds", "settleRate", "time", "zeroCreditSeconds"}
)
# Entities of the very client that looks: what they count depends on what was looked at before.
_OWN: Final = re.compile(r"trioute-client-|\$management|temp\.|local[:…]|management")


def _digits(found: re.Match[str]) -> str:
    return re.sub(r"\d", MASK, found[0])


def _right(found: re.Match[str]) -> str:
    return (MASK * 3).rjust(len(found[0]))


def _nothing(_found: re.Match[str]) -> str:
    return ""


def _short(_found: re.Match[str]) -> str:
    return MASK * 3


def _whole(found: re.Match[str]) -> str:
    return MASK * len(found[0])


def _holdings(found: re.Match[str]) -> str:
    return found[1] + MASK * 3 + "\n"


MASKS: Final[tuple[tuple[str, Callable[[re.Match[str]], str]], ...]] = (
    # where the router and its clients are
    (r"(?<=[\d…]:)\d{5}\b", _whole),
    # which spelling of an option is named depends on click
    (r"(?m)^Try '.*' for help\.\n", _nothing),
    # for how long
    (r"(?m)^uptime +\S+$", _digits),
    (r"(?m)(?<= )\d+:\d\d(?= |$)", _digits),
    # without credit for so long as some are on a slow machine
    (r"(?m)(?<=^links blocked)  +\d+$", _right),
    (r"\d{4}-\d\d-\d\dT[\d:]+Z", _digits),
    (r"(?m)(?<=^virtual)  +[\d.]+ \w+$", _right),
    (r"(?m)(?<=^resident)  +[\d.]+ \w+$", _right),
    (r"(?m)(?<=^output that peers have not read)  +[\d.]+ \w+$", _right),
    (r"(?m)(?<=^memory \(virtual\))  +[\d.]+ \w+$", _right),
    (re.escape(__version__), _whole),
    (r"(?m)^host +\S+\n", _nothing),
    # dynamic nodes, also where their middle was cut out
    (r"temp\.[\w-]+(\.[0-9a-f]{1,16})?(\.trioute[\w-]+)*", _whole),
    (r"local:?[\w.-]*…[\w.-]+", _whole),
    # the router's own links
    (r"\bsolo\.[\w-]{20}\b", _whole),
    # what the router does for its management counts as well
    (r"(?m)^(deliveries (in|out)|accepted|connections processed) +[\d,]+.*$", _digits),
    # a busy machine delays deliveries
    (r"(?m)(?<=^delayed over 1 s)  +[\d,]+$", _right),
    # what each connection holds depends on what was said last, and their order and widths on it
    (r"(?ms)^(Memory by connection\n)id .*\Z", _holdings),
    # how quickly
    (r"(?<=, in )[\d.]+(?= s )", _short),
    (r"(?<=\()[\d.,]+(?=/s\))", _short),
    (r"(?<= )[\d.,]+(?=/s)", _digits),
)


def masked(output: str, own: str | None) -> str:
    """Text with what is volatile covered; `own` is the number of the connection that asked."""
    for pattern, cover in MASKS:
        output = re.sub(pattern, cover, output)
    lines = []
    rate_is_last = False
    for line in output.splitlines(keepends=True):
        rate_is_last = line.endswith("  rate\n") or (rate_is_last and line[0] not in "\n(")
        if rate_is_last:
            line = re.sub(r" +[\d,]+$", _right, line)
        if own is not None and (_OWN.search(line) or re.search(rf"(^| ){own}(\.| |$)", line)):
            line = re.sub(r"\d", MASK, line)
        lines.append(line)
    return "".join(lines)


def masked_json(output: str) -> str:
    """JSON with the values of volatile attributes covered, indented as it was."""
    return json.dumps(_covered(json.loads(output)), indent=2, ensure_ascii=False) + "\n"


def _covered(value: Any) -> Any:
    if isinstance(value, list):
        return [_covered(item) for item in value]
    if not isinstance(value, dict):
        return value
    if any(isinstance(item, str) and _OWN.search(item) for item in value.values()):
        return dict.fromkeys(value, MASK)
    return {
        name: MASK if name in VOLATILE or name.endswith("/s") else _covered(item)
        for name, item in value.items()
    }


def masked_csv(output: str) -> str:
    """CSV with the values of volatile attributes covered."""
    header, *rows = csv.reader(io.StringIO(output))
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        is_own = any(_OWN.search(value) for value in row)
        writer.writerow(
            [
                MASK if is_own or name in VOLATILE or name.endswith("/s") else value
                for name, value in zip(header, row, strict=True)
            ]
        )
    return written.getvalue()


def transcript(runs: Sequence[tuple[Sequence[str], str, int]]) -> str:
    """Return the text of a golden file for runs of (arguments, output, exit code)."""
    parts = []
    for arguments, output, code in runs:
        shown = " ".join(f"'{each}'" if set(each) & set(" $*{}") else each for each in arguments)
        end = "" if not output or output.endswith("\n") else "\n"
        parts.append(f"$ trioute {shown}\n{output}{end}= {code}\n")
    return "\n".join(parts)


def check(file: Path, found: str, *, update: bool) -> None:
    """Compare with a golden file, or write it anew."""
    if update:
        file.write_text(found, encoding="utf-8")
        return
    assert file.exists(), f"{file.name} is not there; --update-golden writes it"
    assert found == file.read_text(encoding="utf-8"), f"--update-golden writes {file.name} anew"
