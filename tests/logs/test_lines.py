"""Lines: texts that peers chose do no harm, and ids stand in front."""

from __future__ import annotations

from router.logs.lines import LONGEST_EVENT, LONGEST_TEXT, plain_text, tame


def test_long_texts_are_cut() -> None:
    event = tame(None, "info", {"event": "link attached", "link": "x" * 100_000, "number": 7})
    assert event["link"] == "x" * LONGEST_TEXT + "... (100000 characters)"
    assert event["number"] == 7


def test_frames_may_be_longer_than_what_peers_chose() -> None:
    event = tame(None, "trace", {"event": "f" * LONGEST_EVENT})
    assert event["event"] == "f" * LONGEST_EVENT
    assert len(tame(None, "trace", {"event": "f" * 100_000})["event"]) < LONGEST_EVENT + 50


def test_the_text_begins_with_the_ids() -> None:
    said = {"event": "link attached", "level": "info", "module": "ROUTER_CORE"}
    assert plain_text({**said}) == "link attached"
    assert plain_text({**said, "connection": 7}) == "[C7] link attached"
    facts = {"connection": 7, "link_id": "7.0.1", "link": "a"}
    assert plain_text({**said, **facts}) == "[C7][L7.0.1] link attached link=a"
    frame = {"event": ":0 <- @open(16)", "connection": 7}
    assert plain_text(frame) == "[C7]:0 <- @open(16)"
