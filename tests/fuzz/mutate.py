"""Plain mutator, for builds that do not report coverage."""

from __future__ import annotations

from random import Random

_TELLING = bytes((0x00, 0x01, 0x40, 0x41, 0x42, 0x43, 0x45, 0x52, 0x53, 0x70, 0x7F, 0x80, 0xA0,
                  0xB0, 0xC0, 0xD0, 0xE0, 0xF0, 0xFF))  # fmt: skip


def mutated(random: Random, corpus: list[bytes]) -> bytes:
    """Return one of the corpus with a few changes."""
    result = bytearray(random.choice(corpus))
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        place = random.randrange(len(result) + 1)
        match random.randrange(7):
            case 0 if place < len(result):
                result[place] = random.randrange(256)
            case 1 if place < len(result):
                result[place] = random.choice(_TELLING)
            case 2 if place < len(result):
                result[place] ^= 1 << random.randrange(8)
            case 3:
                del result[place : place + random.randrange(1, 9)]
            case 4:
                result[place:place] = random.randbytes(random.randrange(1, 9))
            case 5:
                other = random.choice(corpus)
                begin = random.randrange(len(other) + 1)
                result[place:place] = other[begin : begin + random.randrange(1, 200)]
            case _:
                result[place:] = result[place:] * 2
    return bytes(result[:20_000])
