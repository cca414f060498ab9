"""`trioute policy test FILE`: try the policy of a configuration file before it is applied."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

from router.cli.exit_codes import EXIT_NOT_ALL
from router.cli.policy_expectations import (
    InvalidExpectations,
    Outcome,
    check_expectations,
    peer_from,
    question_of,
    read_expectations,
)
from router.cli.policy_report import format_report
from router.cli.render import JsonMap
from router.cli.tables import Cell, Head, lay_out
from router.cli.value_formats import text
from router.config.load import load_file
from router.config.mistakes import InvalidConfiguration
from router.config.model import Configuration
from router.config.qdrouterd.report import FLAG
from router.config.write import table_of
from router.control.policy.decisions import (
    ACTIONS,
    OPEN,
    WITH_ADDRESS,
    Decision,
    Question,
    decide,
)
from router.control.policy.policy import Peer, Policy
from router.control.policy.review import Caution, review

_FILE: Final = click.Path(dir_okay=False, path_type=Path)
# As for a wrong command line: the file that it names cannot be used.
EXIT_UNUSABLE: Final = 2


@click.group()
def policy() -> None:
    """Try a policy before it is applied."""


@policy.command("test")
@click.argument("file", type=_FILE)
@click.argument("questions", nargs=-1, metavar="[QUESTION]...")
@click.option("--as", "user", metavar="USER", help="The user. [default: an anonymous peer]")
@click.option(
    "--from",
    "host",
    metavar="HOST",
    help="The IP address that the user connects from. [default: any]",
)
@click.option("--vhost", metavar="HOSTNAME", help="The host name in the user's open.")
@click.option(
    "--groups",
    metavar="NAMES",
    help="Groups that an authentication plugin would name, separated by commas.",
)
@click.option(
    "--expect",
    type=_FILE,
    metavar="FILE",
    help="Check the expectations in this TOML or CSV file instead.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if the report has warnings.")
@click.option("-v", "--verbose", is_flag=True, help="Show whole lists, and met expectations.")
@click.option("--json", "is_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "--width",
    type=click.IntRange(40),
    metavar="N",
    help="Limit lines to N columns. [default: the terminal's width; without a terminal, no limit]",
)
@click.option(
    FLAG,
    is_flag=True,
    help="Accept a Dispatch file even if it asks for TLS, authentication or policies that are "
    "not supported.",
)
def try_policy(
    file: Path,
    questions: tuple[str, ...],
    user: str | None,
    host: str | None,
    vhost: str | None,
    groups: str | None,
    expect: Path | None,
    strict: bool,
    verbose: bool,
    is_json: bool,
    width: int | None,
    weaker_security: bool,
) -> None:
    """Try the policy of the configuration FILE, which is TOML or a Dispatch file.

    Without further arguments, shows for each vhost and group who may do what, and warns of what
    was probably not meant. With QUESTIONs, or with a user, answers whether the user may do it, and
    why. A QUESTION is `open`, `send ADDRESS`, `receive ADDRESS`, `anonymous` (send on a link
    without an address), `dynamic` (receive from a dynamic node) or `transaction`. With --expect,
    checks a file of such questions and answers.

    Exits with 0 if everything is allowed, or as expected, 1 if something is not, and 2 if a file
    cannot be used.
    """
    is_about_user = any(each is not None for each in (user, host, vhost, groups))
    if expect is not None and (questions or is_about_user):
        raise click.UsageError("--expect cannot be combined with a user or with questions")
    asked = _read_questions(questions)
    configuration = _load(file, weaker_security=weaker_security)
    if width is None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    if expect is not None:
        is_fine = _check(configuration, expect, verbose=verbose, is_json=is_json, width=width)
    elif asked or is_about_user:
        names = (groups or "").replace(",", " ").split()
        peer = peer_from(user or "", host or "", vhost or "", names)
        asked = asked or [Question(OPEN)]
        is_fine = _answer(configuration, peer, asked, is_json=is_json, width=width)
    else:
        cautions = list(review(configuration))
        lines = (
            [_dumps(_report_as_map(configuration, cautions))]
            if is_json
            else format_report(configuration, cautions, width, is_whole=verbose)
        )
        _print(lines)
        is_fine = not (strict and cautions)
    if not is_fine:
        raise SystemExit(EXIT_NOT_ALL)


def _read_questions(words: Sequence[str]) -> list[Question]:
    """Return the questions on the command line; an address may be an argument of its own.

    Raises click.UsageError for a word that does not belong to a question.
    """
    found = []
    rest = iter(words)
    for word in rest:
        action, _, address = word.strip().partition(" ")
        if action in WITH_ADDRESS and not address:
            address = next(rest, "")
        try:
            found.append(question_of(action, address.strip()))
        except ValueError as error:
            names = ", ".join(ACTIONS)
            shown = f"{error}" if action in ACTIONS else f"{word!r} is not a question; give {names}"
            raise click.UsageError(shown) from None
    return found


def _load(file: Path, *, weaker_security: bool) -> Configuration:
    try:
        return load_file(file, weaker_security=weaker_security).configuration
    except InvalidConfiguration as invalid:
        _fail(str(each) for each in invalid.mistakes)


def _fail(lines: Iterable[str]) -> NoReturn:
    for line in lines:
        click.echo(line, err=True)
    raise SystemExit(EXIT_UNUSABLE)


# Answers to questions.


def _answer(
    configuration: Configuration,
    peer: Peer,
    asked: Sequence[Question],
    *,
    is_json: bool,
    width: int | None,
) -> bool:
    """Print the answers to questions about a peer; return whether everything is allowed."""
    tried = Policy(configuration.policy, configuration.vhosts)
    decisions = [(question, decide(tried, peer, question)) for question in asked]
    is_allowed = all(each.is_allowed for _, each in decisions)
    if is_json:
        told = {
            **_peer_as_map(peer),
            "allowed": is_allowed,
            "decisions": [_decision_as_map(*each) for each in decisions],
        }
        _print([_dumps(told)])
        return is_allowed
    first = decisions[0][1]
    _print([f"{_who(peer)}: {_where(first)}", *_table(decisions, width)])
    return is_allowed


def _who(peer: Peer) -> str:
    at = f" at {text(peer.hostname)}" if peer.hostname else ""
    return f"{text(peer.user)}{at}, from {text(peer.host) if peer.host else 'any host'}"


def _where(decision: Decision) -> str:
    vhost = f"vhost {text(decision.vhost)}" if decision.vhost else "no vhost"
    return f"{vhost}, group {text(decision.group)}" if decision.group else vhost


def _table(decisions: Sequence[tuple[Question, Decision]], width: int | None) -> Iterator[str]:
    heads = [Head("", rank=0), Head("question", rank=0, cut=True), Head("why", rank=0, cut=True)]
    rows = [
        [
            Cell("allowed" if decision.is_allowed else "refused"),
            Cell(text(str(question))),
            Cell(text(decision.reason)),
        ]
        for question, decision in decisions
    ]
    yield from lay_out(heads, rows, width)


# Expectations.


def _check(
    configuration: Configuration, file: Path, *, verbose: bool, is_json: bool, width: int | None
) -> bool:
    """Print whether expectations are met; return whether all of them are."""
    try:
        expectations = read_expectations(file)
    except InvalidExpectations as invalid:
        _fail(str(invalid).splitlines())
    tried = Policy(configuration.policy, configuration.vhosts)
    outcomes = list(check_expectations(tried, expectations))
    failed = [each for each in outcomes if not each.is_met]
    if is_json:
        told = {
            "expectations": len(outcomes),
            "failed": len(failed),
            "outcomes": [_outcome_as_map(each) for each in outcomes],
        }
        _print([_dumps(told)])
        return not failed
    shown = outcomes if verbose else failed
    heads = [
        Head("", rank=0),
        Head("no.", right=True, rank=0),
        Head("who", rank=1, cut=True),
        Head("question", rank=0, cut=True),
        Head("is", rank=0),
        Head("why", rank=0, cut=True),
    ]
    rows = [
        [
            Cell("met" if each.is_met else "failed"),
            Cell(str(each.expectation.number)),
            Cell(_who(each.expectation.peer)),
            Cell(text(str(each.expectation.question))),
            Cell("allowed" if each.decision.is_allowed else "refused"),
            Cell(f"{text(each.decision.reason)} ({_where(each.decision)})"),
        ]
        for each in shown
    ]
    if rows:
        _print(lay_out(heads, rows, width))
    _print([f"{len(outcomes) - len(failed)} of {len(outcomes)} expectations are met"])
    return not failed


# JSON.


def _peer_as_map(peer: Peer) -> JsonMap:
    return {
        "user": peer.user,
        "from": peer.host or None,
        "vhost": peer.hostname or None,
        "groups": sorted(peer.groups),
    }


def _decision_as_map(question: Question, decision: Decision) -> JsonMap:
    return {
        "action": question.action,
        "address": question.address or None,
        "allowed": decision.is_allowed,
        "reason": decision.reason,
        "decidedBy": {
            "vhost": decision.vhost or None,
            "group": decision.group or None,
            "attribute": decision.attribute or None,
            "entry": decision.entry or None,
        },
    }


def _outcome_as_map(outcome: Outcome) -> JsonMap:
    expectation = outcome.expectation
    return {
        "number": expectation.number,
        **_peer_as_map(expectation.peer),
        **_decision_as_map(expectation.question, outcome.decision),
        "expected": expectation.is_allowed,
        "met": outcome.is_met,
    }


def _report_as_map(configuration: Configuration, cautions: Iterable[Caution]) -> JsonMap:
    return {
        "policy": table_of(configuration.policy),
        "vhosts": [table_of(each) for each in configuration.vhosts],
        "warnings": [{"place": each.place, "text": each.text} for each in cautions],
    }


def _dumps(value: JsonMap) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
