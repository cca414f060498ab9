"""A message's sections, followed through its frames as they come (part 3, section 3.2).

The router passes messages on as they are, but not whatever they are: sections have an order, most
come once, and each has its type. They are stepped over by size, and nothing inside is looked at, so
a megabyte of body costs a subtraction a frame. On the way it is noted where the sections lie that
are the router's business: the header, and the two kinds of annotations.
"""

from __future__ import annotations

from router.amqp import octets
from router.amqp.constants import Descriptor
from router.amqp.reading import TransferFrame
from router.amqp.sections import SECTION_NAMES

HEADER = int(Descriptor.HEADER)
DELIVERY_ANNOTATIONS = int(Descriptor.DELIVERY_ANNOTATIONS)
MESSAGE_ANNOTATIONS = int(Descriptor.MESSAGE_ANNOTATIONS)
PROPERTIES = int(Descriptor.PROPERTIES)
DATA = int(Descriptor.DATA)
AMQP_SEQUENCE = int(Descriptor.AMQP_SEQUENCE)
AMQP_VALUE = int(Descriptor.AMQP_VALUE)
FOOTER = int(Descriptor.FOOTER)

# How `_begin` and `_begin_value` answer; any other number is where the next octet is.
INCOMPLETE = -1
WRONG = -2

# So much of a symbolic descriptor is waited for.
LONGEST_NAME = 64


class SectionScan:
    """Where in its sections a message is.

    `feed` takes its frames one after the other. An object may be used again after `start`.
    """

    def __init__(self) -> None:
        # what is to be sent on of the last frame
        self.frame = TransferFrame()
        self.start()

    def start(self) -> None:
        """Expect a new message."""
        # the section that began last; 0 before the first
        self.section = 0
        # octets of the present value that are still to come, and values of the section after it
        self.skip = 0
        self.values = 0
        # octets of a frame that ended within a section's first octets
        self.pending = b""
        # what is wrong with the message, for people; empty as long as nothing is
        self.problem = ""
        self.frames = 0
        self.is_first = True
        self.long_code = 0
        # where in the first frame header and message annotations lie; an end is 0 where there are
        # none, or where they reach into the next frame
        self.header_at = self.header_end = 0
        self.cut_at = self.cut_end = 0
        self.message_annotations_at = self.message_annotations_end = 0
        # where what follows them begins there
        self.bare_at = 0

    def feed(self, frame: TransferFrame) -> bool:
        """Follow the message through a frame's payload; False when `problem` says what is wrong.

        Afterwards `frame` is what is to be sent on, without the delivery annotations: the frame
        given, with its bounds moved, or another.
        """
        if self.problem:
            return False
        self.frames += 1
        self.is_first = self.frames == 1
        self.frame = frame
        if self.pending:
            frame = self._joined(frame)
        at = frame.payload_at
        end = frame.end
        if self.is_first:
            self.bare_at = at
        # delivery annotations are for us alone: what of them lies in this frame is left out
        self.cut_at = self.cut_end = 0
        if self.section == DELIVERY_ANNOTATIONS and (self.skip or self.values):
            self.cut_at = at
            self.cut_end = end
        while True:
            if self.skip > end - at:
                self.skip -= end - at
                break
            at += self.skip
            self.skip = 0
            if self.values == 0 and self.section < PROPERTIES:
                self._note_end(at)
            if at == end:
                break
            if self.values == 0:
                following = self._begin(frame, at)
            else:
                following = self._begin_value(frame, at)
            if following == WRONG:
                return False
            if following == INCOMPLETE:
                self._await(frame, at)
                break
            at = following
        if self.cut_end:
            self._leave_out()
        return True

    def finish(self) -> bool:
        """The last frame has come; False when the message ends inside of a section."""
        if not self.problem and (self.skip or self.values or self.pending):
            self.problem = f"the message ends inside of {_name(self.section)}"
        return not self.problem

    def _await(self, frame: TransferFrame, at: int) -> None:
        """A frame ends within the first octets of a section or value; keep them for the next."""
        self.pending = bytes(memoryview(frame.octets)[at : frame.end])
        if self.section < PROPERTIES:
            # whether they are sent on depends on what they turn out to be
            self.frame.end = at
            self.cut_end = min(self.cut_end, at)

    def _joined(self, frame: TransferFrame) -> TransferFrame:
        """The frame with what was pending before it; rare, and never more than a few octets."""
        octets_joined = self.pending + bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
        joined = frame.with_payload(octets_joined)
        self.pending = b""
        if self.section < PROPERTIES:
            self.frame = joined
        return joined

    def _note_end(self, at: int) -> None:
        """Note where a section ends that the router may have to change, or leave out."""
        if self.section == DELIVERY_ANNOTATIONS and self.cut_end:
            self.cut_end = at
        if self.is_first:
            if self.section == HEADER:
                self.header_end = at
            elif self.section == MESSAGE_ANNOTATIONS:
                self.message_annotations_end = at
            self.bare_at = at

    def _leave_out(self) -> None:
        """Leave the delivery annotations out of the frame that is sent on (section 3.2.2)."""
        frame = self.frame
        if self.cut_at == frame.payload_at:
            frame.payload_at = self.cut_end
        elif self.cut_end == frame.end:
            frame.end = self.cut_at
        else:
            view = memoryview(frame.octets)
            head = bytes(view[frame.payload_at : self.cut_at])
            self.frame = frame.with_payload(head + bytes(view[self.cut_end : frame.end]))
            moved = len(head) - self.cut_end
            self.header_at -= frame.payload_at
            self.header_end -= frame.payload_at
            self.bare_at += moved
            if self.message_annotations_at:
                self.message_annotations_at += moved
            if self.message_annotations_end:
                self.message_annotations_end += moved

    def _begin(self, frame: TransferFrame, at: int) -> int:
        """Begin the section at `at`; returns where its value is, INCOMPLETE or WRONG."""
        if frame.octets[at] != 0x00:
            self.problem = f"octet 0x{frame.octets[at]:02x} where a section begins"
            return WRONG
        if frame.end - at < 3:
            return INCOMPLETE
        if frame.octets[at + 1] == 0x53:
            code = frame.octets[at + 2]
            following = at + 3
        else:
            following = self._long_descriptor(frame, at + 1)
            if following < 0:
                return following
            code = self.long_code
        before = self.section
        if code < HEADER or code > FOOTER:
            self.problem = f"a described value 0x{code:02x} is no section"
            return WRONG
        if code <= before and not (code == before and (code == DATA or code == AMQP_SEQUENCE)):
            self.problem = f"{_name(code)} after {_name(before)}"
            return WRONG
        if before >= DATA and code != before and code != FOOTER:
            self.problem = f"{_name(code)} after {_name(before)}: a body is of one kind"
            return WRONG
        self.section = code
        self.values = 1
        if code == DELIVERY_ANNOTATIONS:
            self.cut_at = at
            self.cut_end = frame.end
        elif self.is_first:
            if code == HEADER:
                self.header_at = at
            elif code == MESSAGE_ANNOTATIONS:
                self.message_annotations_at = at
        return following

    def _long_descriptor(self, frame: TransferFrame, at: int) -> int:
        """Read a descriptor of eight octets, or a symbol, into `long_code`."""
        left = frame.end - at
        constructor = frame.octets[at]
        if constructor == 0x80:
            if left < 9:
                return INCOMPLETE
            self.long_code = min(octets.read_u64(frame.octets, at + 1), 0xFFFF)
            return at + 9
        if constructor == 0xA3:
            if left < 2:
                return INCOMPLETE
            size = int(frame.octets[at + 1])
            at += 2
        elif constructor == 0xB3:
            if left < 5:
                return INCOMPLETE
            size = octets.read_u32(frame.octets, at + 1)
            at += 5
        else:
            self.problem = f"constructor 0x{constructor:02x} where a section's descriptor belongs"
            return WRONG
        if size > LONGEST_NAME:
            self.problem = f"a descriptor of {size} octets is no section"
            return WRONG
        if frame.end - at < size:
            return INCOMPLETE
        name = bytes(memoryview(frame.octets)[at : at + size]).decode("latin-1")
        self.long_code = int(SECTION_NAMES.get(name, 0))
        return at + size

    def _begin_value(self, frame: TransferFrame, at: int) -> int:
        """Step over a value's constructor and size; `skip` then says how long the value is."""
        section = self.section
        constructor: int = frame.octets[at]
        if constructor == 0x00 and section == AMQP_VALUE:
            # described: its descriptor is one more value to step over, and may be described itself
            self.values += 1
            return at + 1
        category = constructor >> 4
        if not _is_allowed(section, constructor):
            self.problem = f"constructor 0x{constructor:02x} in {_name(section)}"
            return WRONG
        if category < 0xA:
            # none, 1, 2, 4, 8 and 16 octets
            self.skip = (1 << (category - 4)) >> 1
            at += 1
        elif category & 1:
            if frame.end - at < 5:
                return INCOMPLETE
            self.skip = octets.read_u32(frame.octets, at + 1)
            at += 5
        else:
            if frame.end - at < 2:
                return INCOMPLETE
            self.skip = frame.octets[at + 1]
            at += 2
        self.values -= 1
        return at


def is_plain(frame: TransferFrame) -> bool:
    """Whether a frame is a whole message with nothing to find fault with, or to leave out.

    This is for most messages, and quick. What it does not know it denies, and a scan tells: long
    descriptors, delivery annotations, a body of several sections.
    """
    at = frame.payload_at
    end = frame.end
    before = HEADER - 1
    while at < end:
        if end - at < 5 or frame.octets[at] != 0x00 or frame.octets[at + 1] != 0x53:
            return False
        code = frame.octets[at + 2]
        if code <= before or code > FOOTER or code == DELIVERY_ANNOTATIONS:
            return False
        if before >= DATA and code != FOOTER:
            return False
        constructor = frame.octets[at + 3]
        if not _is_allowed(code, constructor):
            return False
        category = constructor >> 4
        if category == 0xA or category == 0xC:
            at += 5 + frame.octets[at + 4]
        elif (category == 0xB or category == 0xD) and end - at >= 8:
            at += 8 + octets.read_u32(frame.octets, at + 4)
        else:
            return False
        before = code
    return at == end


def _is_allowed(section: int, constructor: int) -> bool:
    """Whether a section may be of the type that a constructor begins."""
    if section == AMQP_VALUE:
        return constructor >= 0x40
    if section == HEADER or section == PROPERTIES or section == AMQP_SEQUENCE:
        return constructor == 0xC0 or constructor == 0xD0 or constructor == 0x45
    if section == DATA:
        return constructor == 0xA0 or constructor == 0xB0
    return constructor == 0xC1 or constructor == 0xD1


def _name(section: int) -> str:
    """What a section is called, for people."""
    if section == 0:
        return "the beginning"
    return f"the {Descriptor(section).name.lower().replace('_', '-')} section"
