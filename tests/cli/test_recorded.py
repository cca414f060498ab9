"""A recorded stream is told frame by frame, with places, whatever is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.amqp.framing import AMQP_HEADER, encode_frame
from router.amqp.performatives import Close, Open, Transfer
from router.cli.recorded import CHUNK_BYTES, recorded_lines

from support.commands import run

OPEN = encode_frame(0, Open("ada"))
LONG = encode_frame(3, Transfer(0), b"x" * (2 * CHUNK_BYTES))
CLOSE = encode_frame(0, Close())


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Write a file with the octets that a peer has sent."""
    file = tmp_path / "recorded"
    file.write_bytes(AMQP_HEADER + OPEN + LONG + CLOSE)
    return file


def test_frames_are_told_with_their_places(recorded: Path) -> None:
    lines = list(recorded_lines(recorded))
    assert [line["name"] for line in lines] == ["AMQP 1.0.0", "open", "transfer", "close"]
    opened = len(AMQP_HEADER) + len(OPEN)
    assert [line["offset"] for line in lines] == [0, 8, opened, opened + len(LONG)]
    assert (lines[2]["channel"], lines[2]["payloadBytes"]) == (3, 2 * CHUNK_BYTES)


def test_the_command_prints_them(recorded: Path) -> None:
    ended = run("trace", recorded)
    assert ended.code == 0
    assert [line.split()[:3] for line in ended.lines] == [
        ["0", "0", "AMQP"],
        ["8", "0", "@open(16)"],
        [str(8 + len(OPEN)), "3", "@transfer(20)"],
        [str(8 + len(OPEN + LONG)), "0", "@close(24)"],
    ]
    as_json = run("trace", recorded, "--json")
    assert [json.loads(line)["name"] for line in as_json.lines][1:] == ["open", "transfer", "close"]


def test_what_is_no_recording_is_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("This is a text, and a long one at that.")
    (line,) = recorded_lines(file)
    assert line["name"] == "not AMQP"
    assert run("trace", tmp_path / "missing").code == 2
    assert run("trace", file, "--all").code == 2
