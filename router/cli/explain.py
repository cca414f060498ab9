"""`trioute explain USER@VHOST send|receive ADDRESS`: explain whether messages flow, and why."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import click

from router.cli.exit_codes import Incomplete
from router.cli.explain_network import format_network
from router.cli.explain_stuck import format_stuck
from router.cli.render import JsonMap, as_json
from router.cli.router_options import RouterTarget, run_with_management, target_options
from router.cli.tables import Cell, Head, lay_out
from router.cli.value_formats import number, text
from router.client import ManagementClient

EXPLAIN: Final = "EXPLAIN"
LEAST_WIDTH: Final = 20
WIDEST: Final = 2**31 - 1
# Counters of normal traffic are shown even if they are 0.
_USUAL: Final = ("ingress", "egress")
_COUNTED: Final = {
    "ingress": "came in",
    "egress": "went out",
    "fromRouters": "came from other routers",
    "toRouters": "went to other routers",
    "accepted": "accepted",
    "rejected": "rejected",
    "released": "released",
    "modified": "modified",
    "redelivered": "redelivered",
    "redirectedToFallback": "to fallback",
    "expired": "expired (ttl)",
    "noDestination": "had no destination",
    "droppedPresettled": "presettled and dropped",
    "shed": "given up for lack of memory",
    "malformed": "malformed",
}
_TO_WHOM: Final = ("connection", "link", "container", "user")


@attrs.frozen
class Who:
    """User and virtual host that an explanation is about; either may be None."""

    user: str | None
    vhost: str | None

    def __str__(self) -> str:
        shown = self.user or "anybody"
        return f"{shown}@{self.vhost}" if self.vhost else shown


def read_who(value: str) -> Who:
    """Parse USER@VHOST, USER or @VHOST; `anonymous` is a user without a name."""
    user, at, vhost = value.rpartition("@") if "@" in value else (value, "", "")
    if not user and not (at and vhost):
        raise click.BadParameter("give USER@VHOST, USER or @VHOST")
    return Who(None if user in ("", "anonymous") else user, vhost or None)


def read_question(
    words: tuple[str, ...], user: str | None, vhost: str | None
) -> tuple[Who, str, str]:
    """Return the user, the direction and the address that the arguments and options give."""
    if len(words) == 3 and user is None and vhost is None:
        who, words = read_who(words[0]), words[1:]
    elif len(words) == 2:
        who = Who(None if user in (None, "", "anonymous") else user, vhost or None)
    else:
        raise click.UsageError(
            "give USER@VHOST, send or receive, and an address; or the user by --as and --vhost"
        )
    direction, address = words
    if direction not in ("send", "receive"):
        raise click.BadParameter(f"{direction!r} is neither send nor receive")
    return who, direction, address


@click.command()
@click.argument("words", metavar="[USER@VHOST] send|receive ADDRESS", nargs=-1, required=True)
@click.option("--as", "given_user", metavar="USER", help="The user, if it is not the first word.")
@click.option("--vhost", "given_vhost", metavar="VHOST", help="The hostname in the user's open.")
@click.option("--from", "host", metavar="HOST", help="The IP address that the user connects from.")
@click.option("--json", "is_json", is_flag=True, help="Print the answer as JSON.")
@click.option(
    "--width",
    type=click.IntRange(20),
    metavar="N",
    help="Limit lines to N columns. [default: the terminal's width; without a terminal, no limit]",
)
@target_options
def explain(
    target: RouterTarget,
    words: tuple[str, ...],
    given_user: str | None,
    given_vhost: str | None,
    host: str | None,
    is_json: bool,
    width: int | None,
) -> None:
    """Explain whether a user's messages flow to or from ADDRESS, and why.

    Shows which listeners admit the user, what the policy of the running router decides about the
    user, which rule applies to the address, and the links of those who receive from the address (or
    send to it): their credit and window, which link gets the next message, and what holds a link
    back. The command changes nothing. VHOST is the hostname in the user's open; `anonymous` stands
    for a user without a name.

    Exits with 0 if messages flow, 1 if they do not, and 3 if there was no connection or no
    response.
    """
    who, direction, address = read_question(words, given_user, given_vhost)
    if width is None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns

    async def work(management: ManagementClient) -> None:
        asked = {"user": who.user, "vhost": who.vhost, "direction": direction, "address": address}
        if host is not None:
            asked["host"] = host
        answer = as_json(await management.request(EXPLAIN, asked))
        if is_json:
            click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        else:
            for line in format_explanation(who, answer, width):
                click.echo(line)
        if not answer["flows"]:
            raise Incomplete("")

    run_with_management(target, work)


def format_explanation(who: Who, answer: JsonMap, width: int | None) -> Iterator[str]:
    """Yield the lines of an explanation, for people; the conclusion is first."""
    does = "send to" if answer["direction"] == "send" else "receive from"
    may = "may" if answer["allowed"] else "may not"
    yield f"{text(str(who))} {may} {does} {text(answer['address'])}."
    if answer["flows"]:
        yield "Messages flow."
    lead = "Nothing flows"
    for reason in answer["reasons"]:
        yield from _wrapped(f"{lead}: {text(reason['text'])} ({reason['reason']}).", width, 4)
        lead = "And"
    yield ""
    for name, fact in _facts(answer):
        yield from _wrapped(f"{name:10}{fact}", width, 10)
    if answer.get("linkRoute"):
        yield from _containers(answer["linkRoute"], width)
    elif answer["allowed"]:
        yield from _links(answer, width)
        if answer.get("network"):
            yield from format_network(answer["network"], width)


def _wrapped(line: str, width: int | None, indent: int) -> list[str]:
    """Return a line, split into several if it is too long."""
    room = max(width or sys.maxsize, LEAST_WIDTH)
    return textwrap.wrap(line, room, subsequent_indent=" " * indent, break_on_hyphens=False)


def _facts(answer: JsonMap) -> Iterator[tuple[str, str]]:
    yield "policy", text(answer["policy"]["text"])
    yield from _decisions(answer)
    if answer.get("tenant"):
        yield "tenant", f"{text(answer['tenant'])}: {text(answer['address'])} is the address here"
    for listener in answer["listeners"]:
        verdict = "lets the user in" if listener["admits"] else "does not let the user in"
        yield "listener", f"{text(listener['name'])} {verdict}: {text(listener['text'])}"
    if answer.get("linkRoute"):
        yield "forwarded", _link_route(answer["linkRoute"])
        return
    yield "address", _rule(answer)
    for each in answer.get("autoLinks") or ():
        yield "auto-link ", _auto_link(each)
    yield "route", " > ".join(map(text, answer["route"])) + f", cost {answer['cost']}"
    if not answer["allowed"]:
        return
    if not answer["inUse"]:
        yield "state", "not in use"
        return
    waiting, room, held = (number(answer[name]) for name in ("waiting", "room", "creditHeld"))
    yield (
        "waiting",
        f"{waiting} deliveries; receivers can take {room} more, senders may send {held}",
    )
    yield from format_stuck(answer.get("stuckReceivers"))
    counters = answer["counters"]
    counted = [
        f"{number(counters[name])} {word}"
        for name, word in _COUNTED.items()
        if counters.get(name) or name in _USUAL
    ]
    yield "so far", ", ".join(counted)


def _decisions(answer: JsonMap) -> Iterator[tuple[str, str]]:
    """Yield what the policy decides about the open, and about sending and receiving."""
    for action, each in (answer["policy"].get("decisions") or {}).items():
        yield (
            "",
            f"{action} is {'allowed' if each['allowed'] else 'refused'}: {text(each['reason'])}",
        )


def _link_route(route: JsonMap) -> str:
    way = "that clients send on" if route["direction"] == "in" else "that clients receive on"
    words = [f"links {way}, by the link route of {text(route['pattern'])}"]
    words += [
        f"the next one to {text(each['container'])} as {text(each['address'])}"
        for each in route["containers"]
        if each["chosen"]
    ]
    words += [f"the next one to {_router(each)}" for each in route["routers"] if each["chosen"]]
    return "; ".join(words)


def _router(each: JsonMap) -> str:
    """Return a router's id after the word for its kind, such as "edge e1" or "router a"."""
    return f"{'edge' if each.get('isEdge') else 'router'} {text(each['router'])}"


def _auto_link(link: JsonMap) -> str:
    way = "from" if link["direction"] == "in" else "to"
    where = text(link["containerId"] or link["connection"] or "no container")
    words = f"{way} {text(link['externalAddress'])} at {where} is {link['operStatus']}"
    return f"{words} ({text(link['lastError'])})" if link["lastError"] else words


def _rule(answer: JsonMap) -> str:
    rule = answer["rule"]
    why = "no rule matches" if rule is None else f"by the {rule['kind']} {text(rule['pattern'])}"
    words = [f"{answer['distribution']}, {why}"]
    if answer["isOwnNode"]:
        words.append("a node of the router itself")
    if answer["isDynamic"]:
        words.append("a dynamic node")
    if answer["phase"]:
        words.append(f"at phase {answer['phase']}")
    if answer.get("toFallback"):
        words.append("no other receivers, so messages go to the fallback")
    if rule is not None and rule["deadLetterAddress"]:
        words.append(f"expired messages go to {text(rule['deadLetterAddress'])}")
    return "; ".join(words)


def _links(answer: JsonMap, width: int | None) -> Iterator[str]:
    """Yield tables of an address's links: receivers first if the user sends, otherwise senders."""
    sides = [
        ("Receivers", "destinations", "destinationCount", ("credit", "window", "unsettled")),
        ("Senders", "senders", "senderCount", ("credit", "capacity", "unsettled")),
    ]
    for title, key, count, numbers in sides if answer["direction"] == "send" else reversed(sides):
        ends = answer[key]
        if not ends:
            continue
        yield ""
        yield title if len(ends) == answer[count] else f"{title}, {len(ends)} of {answer[count]}"
        yield from _ends(ends, numbers, width, is_choice=key == "destinations")
    if answer["ownLinks"]:
        yield ""
        yield "Links of this user to the address"
        yield from _ends(answer["ownLinks"], ("credit", "unsettled"), width, is_choice=False)


def _containers(route: JsonMap, width: int | None) -> Iterator[str]:
    """Yield tables for a link route: its containers, other routers that serve it, and its links."""
    if route["containers"]:
        yield ""
        count, total = len(route["containers"]), route["containerCount"]
        yield "Containers" if count == total else f"Containers, {count} of {total}"
        heads = [
            Head("conn", rank=2),
            Head("container", cut=True, rank=0),
            Head("address there", cut=True, rank=3),
            Head("links", right=True, rank=1),
            Head("next", rank=1),
            Head("why not", cut=True, rank=0),
            Head("last refusal", cut=True, rank=4),
        ]
        rows = [
            [
                *(Cell(text(each[name])) for name in ("connection", "container", "address")),
                Cell(number(each["links"])),
                Cell("yes" if each["chosen"] else ""),
                *(Cell(text(each[name])) for name in ("text", "lastRefusal")),
            ]
            for each in route["containers"]
        ]
        yield from lay_out(heads, rows, width)
    if route["routers"]:
        yield ""
        count, total = len(route["routers"]), route["routerCount"]
        yield "At other routers" if count == total else f"At other routers, {count} of {total}"
        heads = [
            Head("router", cut=True, rank=0),
            Head("conn", rank=2),
            Head("cost", right=True, rank=1),
            Head("links", right=True, rank=1),
            Head("next", rank=1),
            Head("why not", cut=True, rank=0),
        ]
        rows = [
            [
                Cell(_router(each)),
                Cell(text(each["connection"])),
                Cell(number(each["cost"])),
                Cell(number(each["links"])),
                Cell("yes" if each["chosen"] else ""),
                Cell(text(each["text"])),
            ]
            for each in route["routers"]
        ]
        yield from lay_out(heads, rows, width)
    if route["links"]:
        yield ""
        count, total = len(route["links"]), route["linkCount"]
        yield "Links that are forwarded" + ("" if count == total else f", {count} of {total}")
        columns = {
            "connection": "conn",
            "link": "link",
            "address": "address",
            "toConnection": "to conn",
            "toRouter": "to router",
            "toAddress": "as",
        }
        if not any(each["toRouter"] for each in route["links"]):
            del columns["toRouter"]
        heads = [Head(head, cut=True) for head in columns.values()]
        rows = [[Cell(text(each[name])) for name in columns] for each in route["links"]]
        yield from lay_out(heads, rows, width)


def _count(value: int) -> str:
    """Return a count as text, or "any" for the largest possible window, which limits nothing."""
    return "any" if value >= WIDEST else number(value)


def _to_whom(end: JsonMap, name: str) -> str:
    return "(the router)" if name == "container" and not end[name] else text(end[name])


def _ends(
    ends: Sequence[JsonMap],
    numbers: Sequence[str],
    width: int | None,
    *,
    is_choice: bool,
) -> Iterator[str]:
    heads = [Head("conn", rank=2), Head("link", rank=0), Head("container", cut=True, rank=4)]
    heads.append(Head("user", cut=True, rank=5))
    heads += [Head(name, right=True, rank=3) for name in numbers]
    heads.append(Head("next" if is_choice else "", rank=1 if is_choice else 6))
    heads.append(Head("held back by", cut=True, rank=0))
    rows = [
        [
            *(Cell(_to_whom(end, name)) for name in _TO_WHOM),
            *(Cell(_count(end[name])) for name in numbers),
            Cell("yes" if end.get("chosen") else ""),
            Cell(text(end["text"])),
        ]
        for end in ends
    ]
    if not is_choice:
        heads.pop(-2)
        for row in rows:
            row.pop(-2)
    yield from lay_out(heads, rows, width)
