"""Decode a recording of the octets that one direction of a connection carried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from router.amqp.constants import FRAME_HEADER_SIZE
from router.amqp.describing import Describer
from router.amqp.watching import SeenFrame, Watcher
from router.cli.render import JsonMap

CHUNK_BYTES = 65536


def recorded_lines(file: Path) -> Iterator[JsonMap]:
    """Yield the frames in a recorded file as trace lines, each with its offset.

    Raises OSError if the file cannot be read.
    """
    watcher, describer = Watcher(), Describer(from_start=True)
    at = 0
    with file.open("rb") as stream:
        while octets := stream.read(CHUNK_BYTES):
            for seen in watcher.feed(octets):
                words = describer.describe(seen)
                yield {
                    "kind": "recorded",
                    "offset": at,
                    "channel": seen.channel if isinstance(seen, SeenFrame) else 0,
                    "name": words.name,
                    "code": words.code,
                    "fields": words.fields,
                    "payload": words.payload,
                    "payloadBytes": words.payload_bytes,
                    "note": words.note,
                }
                at += seen.size if isinstance(seen, SeenFrame) else FRAME_HEADER_SIZE
