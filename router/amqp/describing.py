"""Frames as text, for traces: `@attach(18) [name="x", handle=0, role=sender]`.

Fields have the specification's names and order; null fields are omitted. Whatever was sent, the
text is printable and of limited length. It never contains credentials: of SASL responses and
challenges only the size is shown, and so it is with payloads where peers send security tokens.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from router.amqp.composite import Composite, class_of
from router.amqp.constants import Descriptor
from router.amqp.decode import decode_value
from router.amqp.types import Array, Described, Map, Symbol
from router.amqp.watching import Seen, SeenFrame, SeenHeader
from router.errors import AmqpError

LONGEST_FIELD: Final = 512
LONGEST_OCTETS: Final = 32
LONGEST_PAYLOAD: Final = 64
DEEPEST: Final = 6
MOST_ITEMS: Final = 32
HIDDEN: Final = "<not shown>"

_PROTOCOLS: Final = {0: "AMQP", 2: "TLS", 3: "SASL"}
# Fields with credentials, by performative and field.
_SECRET: Final = frozenset(
    {
        ("sasl-init", "initial-response"),
        ("sasl-challenge", "challenge"),
        ("sasl-response", "response"),
        ("sasl-outcome", "additional-data"),
    }
)
# The name of a mechanism (RFC 4422, section 3.1).
_MECHANISM: Final = re.compile(r"[A-Z0-9_-]{1,20}")
_SASL: Final = frozenset(
    int(code)
    for code in (
        Descriptor.SASL_MECHANISMS,
        Descriptor.SASL_INIT,
        Descriptor.SASL_CHALLENGE,
        Descriptor.SASL_RESPONSE,
        Descriptor.SASL_OUTCOME,
    )
)


@attrs.frozen
class Words:
    """Text of a frame, in parts.

    `name` is the performative's name. Its fields are in `fields` as text and in `values` decoded.
    `payload` is the part of the payload that is shown, and `payload_bytes` the size of the whole
    payload.
    """

    name: str
    code: int = 0
    fields: dict[str, str] = attrs.field(factory=dict)
    payload_bytes: int = 0
    payload: str = ""
    note: str = ""
    values: dict[str, object] = attrs.field(factory=dict, repr=False)
    payload_at: int = attrs.field(default=0, repr=False)

    @property
    def text(self) -> str:
        """Return the whole text in one line."""
        text = f"@{self.name}({self.code})" if self.code else self.name
        if self.fields or self.code:
            told = ", ".join(f"{name}={value}" for name, value in self.fields.items())
            text += f" [{told}]"
        if self.payload_bytes:
            text += f" ({self.payload_bytes}) {self.payload}"
        return f"{text} {self.note}" if self.note else text


class Describer:
    """Describer of the frames in one direction of a connection.

    Octets that cannot be decoded are hidden while the peer may be in its SASL exchange, because
    they may be credentials. With `has_tokens`, messages may have security tokens: no payload is
    shown, nor ever octets that cannot be decoded.
    """

    def __init__(self, *, from_start: bool, has_tokens: bool = False) -> None:
        self._may_be_secret = not from_start
        self.has_tokens = has_tokens

    def describe(self, seen: Seen) -> Words:
        """Describe what was seen in the stream: a protocol header, a frame or other octets."""
        if isinstance(seen, SeenHeader):
            self._may_be_secret = seen.protocol_id != 0
            version = ".".join(map(str, seen.version))
            name = _PROTOCOLS.get(seen.protocol_id, str(seen.protocol_id))
            return Words(f"{name} {version}")
        if isinstance(seen, SeenFrame):
            return self._frame(seen)
        shown = "" if self._hides_octets else f": {show_octets(seen.octets, LONGEST_OCTETS)}"
        return Words("not AMQP", note=f"(not a frame; rest of the stream ignored{shown})")

    @property
    def _hides_octets(self) -> bool:
        return self._may_be_secret or self.has_tokens

    def _frame(self, seen: SeenFrame) -> Words:
        if not seen.body and not seen.left:
            return Words("empty frame")
        try:
            value, after = decode_value(seen.body)
        except AmqpError as error:
            why = "too long to be shown" if seen.left else "cannot be read"
            if not seen.left and not self._hides_octets:
                why = f"{why}: {show_text(error.description)}"
            return Words("frame", note=f"({seen.size} octets, {why})")
        described = value if type(value) is Described else None
        cls = None if described is None else class_of(described)
        if described is None or cls is None or type(described.value) is not list:
            if self._hides_octets:
                return Words("frame", note=f"({seen.size} octets of no known performative)")
            return Words("frame", note=f"(no known performative: {show(value)})")
        if int(cls.CODE) not in _SASL:
            self._may_be_secret = False
        words = _performative(cls, described.value, seen, after)
        return attrs.evolve(words, payload=HIDDEN) if words.payload and self.has_tokens else words


def _performative(cls: type[Composite], items: list[object], seen: SeenFrame, after: int) -> Words:
    name = cls.NAME.split(":")[1]
    fields = {}
    values = {}
    for field, item in zip(cls.FIELDS, items, strict=False):
        if item is None:
            continue
        title = field.name.replace("_", "-")
        if (name, title) in _SECRET:
            size = f"{len(item)} octets, " if isinstance(item, bytes) else ""
            fields[title] = f"<{size}not shown>"
            continue
        if name == "sasl-init" and not _is_harmless(title, item):
            fields[title] = HIDDEN
            continue
        values[field.name] = item
        if title == "role" and isinstance(item, bool):
            fields[title] = "receiver" if item else "sender"
        else:
            fields[title] = _cut(show(item))
    more = len(items) - len(cls.FIELDS)
    note = f"({more} fields too many)" if more > 0 else ""
    rest = seen.body[after:]
    shown = show_octets(rest, LONGEST_PAYLOAD, is_cut=bool(seen.left)) if rest or seen.left else ""
    if shown and int(cls.CODE) in _SASL:
        # a SASL frame has no payload; these octets may be a part of a response
        shown = HIDDEN
    return Words(
        name,
        int(cls.CODE),
        fields,
        len(rest) + seen.left,
        shown,
        note,
        values,
        after,
    )


def _is_harmless(title: str, item: object) -> bool:
    """Return whether a field of a sasl-init can be shown, and is no misplaced response."""
    if not isinstance(item, str):
        return False
    return _MECHANISM.fullmatch(item) is not None if title == "mechanism" else item.isprintable()


def show(value: object, depth: int = 0) -> str:
    """Return a decoded value as text; deep, long or numerous parts are cut with `...`.

    The forms are `"text"`, `:symbol`, `b"octets"`, `[list]`, `{map}` and `@name [...]`.
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Symbol):
        return f":{show_text(value)}"
    if isinstance(value, str):
        return f'"{show_text(value)}"'
    if isinstance(value, bytes):
        return f"b{show_octets(value, LONGEST_OCTETS)}"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return str(float(value))
    if depth == DEEPEST:
        return "..."
    if isinstance(value, Described):
        return _described(value, depth + 1)
    if isinstance(value, dict | Map):
        pairs = list(value.items()) if isinstance(value, dict) else list(value.pairs)
        shown = [f"{show(k, depth + 1)}={show(v, depth + 1)}" for k, v in pairs[:MOST_ITEMS]]
        return f"{{{', '.join(shown + ['...'] * (len(pairs) > MOST_ITEMS))}}}"
    if isinstance(value, list | Array):
        items = list(value)
        shown = [show(item, depth + 1) for item in items[:MOST_ITEMS]]
        return f"[{', '.join(shown + ['...'] * (len(items) > MOST_ITEMS))}]"
    return show_text(str(value))


def _described(value: Described, depth: int) -> str:
    cls = class_of(value)
    if cls is None or type(value.value) is not list:
        return f"@{show(value.descriptor, depth)} {show(value.value, depth)}"
    fields = [
        f"{field.name.replace('_', '-')}={show(item, depth)}"
        for field, item in zip(cls.FIELDS, value.value, strict=False)
        if item is not None
    ]
    return f"@{cls.NAME.split(':')[1]}({int(cls.CODE)}) [{', '.join(fields)}]"


def show_text(text: str) -> str:
    """Return a text on one line, without unprintable characters, cut if it is long."""
    cut = text[:LONGEST_FIELD]
    shown = "".join(c if c.isprintable() and c != '"' else ascii(c)[1:-1] for c in cut)
    return f"{shown}..." if len(text) > len(cut) else shown


def show_octets(octets: bytes, longest: int, *, is_cut: bool = False) -> str:
    r"""Return octets as quoted text; those that are not printable ASCII become `\x00`."""
    shown = "".join(
        chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\x{c:02x}" for c in octets[:longest]
    )
    return f'"{shown}"' + ("..." if is_cut or len(octets) > longest else "")


def _cut(text: str) -> str:
    return text if len(text) <= 2 * LONGEST_FIELD else f"{text[: 2 * LONGEST_FIELD]}..."
