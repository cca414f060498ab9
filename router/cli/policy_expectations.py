"""Files of expectations about a policy: who may do what, and whether the policy meets them.

A TOML file has a table `[[expect]]` for each expectation, a CSV file a row; the attributes are the
same. `action` is required, and so is `address` for send and receive. Without `user` the peer is
anonymous, and without `from` it may come from any host. `allowed` is true if it is absent.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from router.control.policy.decisions import ACTIONS, WITH_ADDRESS, Decision, Question, decide
from router.control.policy.policy import Peer, Policy
from router.core.addresses.link_origins import ANONYMOUS
from router.errors import TriouteError

ATTRIBUTES: Final = ("user", "from", "vhost", "groups", "action", "address", "allowed")
MOST_EXPECTATIONS: Final = 100_000
LARGEST_BYTES: Final = 16 * 2**20
_EXTRA_CELL: Final = "a cell beyond the header"
_FLAGS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class InvalidExpectations(TriouteError):
    """Mistakes in a file of expectations, one a line."""


@attrs.frozen
class Expectation:
    """Expectation that a peer may or may not do something; `number` is its position in the file."""

    number: int
    peer: Peer
    question: Question
    is_allowed: bool


@attrs.frozen
class Outcome:
    """Expectation, and what the policy decides."""

    expectation: Expectation
    decision: Decision

    @property
    def is_met(self) -> bool:
        """Return whether the policy decides as expected."""
        return self.expectation.is_allowed == self.decision.is_allowed


def read_expectations(file: Path) -> list[Expectation]:
    """Read a file of expectations; raise InvalidExpectations with every mistake in it."""
    try:
        with file.open("rb") as opened:
            octets = opened.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise InvalidExpectations(f"{file}: {error.strerror or error}") from None
    if len(octets) > LARGEST_BYTES:
        raise InvalidExpectations(f"{file}: has more than {LARGEST_BYTES} bytes")
    try:
        text = octets.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidExpectations(f"{file}: is not UTF-8 text") from None
    rows = _csv_rows(file, text) if file.suffix.lower() == ".csv" else _toml_rows(file, text)
    found: list[Expectation] = []
    mistakes: list[str] = []
    for number, row in enumerate(rows, 1):
        if number > MOST_EXPECTATIONS:
            mistakes.append(f"{file}: has more than {MOST_EXPECTATIONS} expectations")
            break
        try:
            found.append(_expectation(number, row))
        except ValueError as error:
            mistakes.append(f"{file}: expectation {number}: {error}")
    if mistakes:
        raise InvalidExpectations("\n".join(mistakes))
    if not found:
        raise InvalidExpectations(f"{file}: has no expectations; give [[expect]] tables")
    return found


def check_expectations(policy: Policy, expectations: Iterable[Expectation]) -> Iterator[Outcome]:
    """Yield what a policy decides about each expectation."""
    for each in expectations:
        yield Outcome(each, decide(policy, each.peer, each.question))


def _toml_rows(file: Path, text: str) -> list[object]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidExpectations(f"{file}: {error}") from None
    rows = data.pop("expect", [])
    if data or not isinstance(rows, list):
        raise InvalidExpectations(f"{file}: may only have [[expect]] tables")
    return rows


def _csv_rows(file: Path, text: str) -> Iterator[object]:
    try:
        for row in csv.DictReader(io.StringIO(text), restkey=_EXTRA_CELL, skipinitialspace=True):
            # an empty cell is an absent attribute
            yield {name: value for name, value in row.items() if value}
    except csv.Error as error:
        raise InvalidExpectations(f"{file}: {error}") from None


def _expectation(number: int, row: object) -> Expectation:
    """Read an expectation; raise ValueError, which says what is wrong."""
    if not isinstance(row, Mapping):
        raise ValueError("is not a table")
    unknown = [str(name) for name in row if name not in ATTRIBUTES]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} is unknown; allowed are {', '.join(ATTRIBUTES)}")
    texts = {name: _text(row, name) for name in ("user", "from", "vhost", "action", "address")}
    question = question_of(texts["action"], texts["address"])
    groups = row.get("groups", ())
    if isinstance(groups, str):
        groups = groups.replace(",", " ").split()
    if not isinstance(groups, list | tuple) or not all(isinstance(each, str) for each in groups):
        raise ValueError("groups must be a list of texts, or one text with commas")
    peer = peer_from(texts["user"], texts["from"], texts["vhost"], groups)
    return Expectation(number, peer, question, _flag(row.get("allowed", True)))


def peer_from(user: str, host: str, hostname: str, groups: Iterable[str]) -> Peer:
    """Return a peer; without a user it is anonymous."""
    return Peer(hostname, user or ANONYMOUS, host, frozenset(groups))


def question_of(action: str, address: str) -> Question:
    """Return a question; raise ValueError for an unknown action, or a missing or extra address."""
    if action not in ACTIONS:
        raise ValueError(f"action must be one of {', '.join(ACTIONS)}, not {action or 'absent'}")
    if action in WITH_ADDRESS and not address:
        raise ValueError(f"{action} needs an address")
    if action not in WITH_ADDRESS and address:
        raise ValueError(f"{action} does not take an address")
    return Question(action, address)


def _text(row: Mapping[str, object], name: str) -> str:
    value = row.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text")
    return value.strip()


def _flag(value: object) -> bool:
    found = value if isinstance(value, bool) else _FLAGS.get(str(value).strip().lower())
    if found is None:
        raise ValueError("allowed must be true or false")
    return found
