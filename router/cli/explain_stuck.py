"""Part of `trioute explain` about stuck receivers."""

from __future__ import annotations

from collections.abc import Iterator

from router.cli.render import JsonMap
from router.cli.value_formats import number, text


def format_stuck(answer: JsonMap | None) -> Iterator[tuple[str, str]]:
    """Yield facts about stuck receivers of a multicast address, as pairs of label and text.

    `answer` is None if the address is not multicast, or if the router is too old to report stuck
    receivers.
    """
    if not answer:
        return
    for each in answer["stuck"]:
        remaining_s = each["droppedInSeconds"]
        next_step = "waited for"
        if remaining_s is not None:
            next_step = f"dropped in {_seconds(remaining_s)}"
        who = f"{text(each['container'])} (link {each['link']})"
        yield "stuck", f"{who} for {_seconds(each['stuckSeconds'])}: {each['text']}; {next_step}"
    last = answer["lastDropped"]
    if last is not None:
        count, ago = number(answer["dropped"]), _seconds(last["secondsAgo"])
        who = f"{text(last['container'])} (connection {last['connection']})"
        why = f"stuck for {_seconds(last['stuckSeconds'])}: {last['text']}"
        yield "dropped", f"{count} so far, the last one {ago} ago: {who}, {why}"


def _seconds(value: float) -> str:
    return f"{value:,.0f} s"
