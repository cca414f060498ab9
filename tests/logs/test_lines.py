"""Lines: texts that peers chose do no harm, and ids stand in front."""

from __future__ import annotations

from router.logs.lines import MAX_EVENT, MAX_VALUE, escape_and_cut, plain_text


def test_long_texts_are_cut() -> None:
    event = escape_and_cut(
        None, "info", {"event": "link attached", "link": "x" * 100_000, "number": 7}
    )
    assert event["link"] == "x" * MAX_VALUE + "... (100000 characters)"
    assert event["number"] == 7


def test_frames_may_be_longer_than_what_peers_chose() -> None:
    event = escape_and_cut(None, "trace", {"event": "f" * MAX_EVENT})
    assert event["event"] == "f" * MAX_EVENT
    assert len(escape_and_cut(None, "trace", {"event": "f" * 100_000})["event"]) < MAX_EVENT + 50


def test_the_text_begins_with_the_ids() -> None:
    said = {"event": "link attached", "level": "info", "module": "ROUTER_CORE"}
    assert plain_text({**said}) == "link attached"
    assert plain_text({**said, "connection": 7}) == "[C7] link attached"
    facts = {"connection": 7, "link_id": "7.0.1", "link": "a"}
    assert plain_text({**said, **facts}) == "[C7][L7.0.1] link attached link=a"
    frame = {"event": ":0 <- @open(16)", "connection": 7}
    assert plain_text(frame) == "[C7]:0 <- @open(16)"
