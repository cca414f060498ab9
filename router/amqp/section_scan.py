"""Follow a message's sections through its frames as they arrive (part 3, section 3.2).

The router passes messages on as they are, but only if they are well-formed: sections have an order,
most occur once, and each has its type. Sections are skipped by size and their content is not read,
so a megabyte of body costs one subtraction per frame.

The router only uses a message's head: its header and the two kinds of annotations. If a frame ends
within the head, the frame is kept until the head is complete. So code that forwards or keeps a
message finds all of the head in the first frame.
"""

from __future__ import annotations

from router.amqp import octets
from router.amqp.annotations import have_no_own_keys
from router.amqp.constants import Descriptor
from router.amqp.peek import PRIORITY as PRIORITY_MEANT, find_header
from router.amqp.reading import TransferFrame
from router.amqp.sections import SECTION_NAMES

HEADER = int(Descriptor.HEADER)
PRIORITY = PRIORITY_MEANT
DELIVERY_ANNOTATIONS = int(Descriptor.DELIVERY_ANNOTATIONS)
MESSAGE_ANNOTATIONS = int(Descriptor.MESSAGE_ANNOTATIONS)
PROPERTIES = int(Descriptor.PROPERTIES)
DATA = int(Descriptor.DATA)
AMQP_SEQUENCE = int(Descriptor.AMQP_SEQUENCE)
AMQP_VALUE = int(Descriptor.AMQP_VALUE)
FOOTER = int(Descriptor.FOOTER)

# Results of `_begin` and `_begin_value`; any other result is the position of the next octet.
INCOMPLETE = -1
WRONG = -2

# The longest symbolic descriptor that is read; a longer one is refused at its size.
LONGEST_NAME = 64


class SectionScan:
    """Progress of a scan through the sections of one message.

    `feed` takes the message's frames one after the other. The object can be used again after
    `start`.
    """

    def __init__(self) -> None:
        # the part of the last frame to forward, once the head is complete
        self.frame = TransferFrame()
        self.start()

    def start(self) -> None:
        """Begin to scan a new message."""
        # the section that began last; 0 before the first
        self.section = 0
        # octets of the current value that are not received yet, and values of the section after it
        self.skip = 0
        self.values = 0
        # octets of frames that ended within the head, or within a section's first octets
        self.pending = b""
        # a description of what is wrong with the message; empty if nothing is
        self.problem = ""
        self.long_code = 0
        # the head is complete; when it becomes complete, `frame` begins with it
        self.is_headed = False
        # where in that frame the map of the message annotations lies; both 0 if there is none
        self.annotations_at = self.annotations_end = 0
        # where the delivery annotations lie in it, and their octets once they are removed
        self.cut_at = self.cut_end = 0
        self.left_out = b""

    def feed(self, frame: TransferFrame) -> bool:
        """Scan the next frame of the message; return False if the message is malformed.

        `problem` then says why. Otherwise `self.frame` is the frame to forward, without delivery
        annotations. Nothing can be forwarded while `is_headed` is False: the message's header and
        annotations are not complete yet.
        """
        if self.problem:
            return False
        sent_on = frame
        if self.pending:
            frame = self._joined(frame)
            if not self.is_headed:
                sent_on = frame
        self.frame = sent_on
        at = frame.payload_at
        end = frame.end
        while True:
            if self.skip > end - at:
                self.skip -= end - at
                break
            at += self.skip
            self.skip = 0
            if self.values == 0 and not self.is_headed:
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
                self.pending = bytes(memoryview(frame.octets)[at:end])
                break
            at = following
        if not self.is_headed:
            self._look_at_head(frame)
        return True

    def finish(self) -> bool:
        """Return whether the message, whose last frame was scanned, is well-formed and complete."""
        if not self.problem and (self.skip or self.values or self.pending):
            self.problem = f"the message ends inside {_name(self.section)}"
        return not self.problem

    def _look_at_head(self, frame: TransferFrame) -> None:
        """Set `is_headed` if the message's header and annotations are complete.

        Otherwise they are kept for the next frame. Once they are complete, the delivery annotations
        are removed.
        """
        self.is_headed = (
            not frame.more
            or self.section >= PROPERTIES
            or (self.section == MESSAGE_ANNOTATIONS and self.skip == 0 and self.values == 0)
        )
        if not self.is_headed:
            self._await_head(frame)
        elif self.cut_end:
            self._leave_out()

    def _await_head(self, frame: TransferFrame) -> None:
        """Keep the incomplete header and annotations, to scan them again with the next frame."""
        self.pending = bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
        self.section = 0
        self.skip = 0
        self.values = 0
        self.annotations_at = self.annotations_end = 0
        self.cut_at = self.cut_end = 0

    def _joined(self, frame: TransferFrame) -> TransferFrame:
        """Return a copy of the frame whose payload begins with the octets in `pending`."""
        joined = self.pending + bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
        self.pending = b""
        return frame.with_payload(joined)

    def _note_end(self, at: int) -> None:
        """Note the end of a section that the router may have to change or remove."""
        if self.section == DELIVERY_ANNOTATIONS:
            self.cut_end = at
        elif self.section == MESSAGE_ANNOTATIONS:
            self.annotations_end = at

    def _leave_out(self) -> None:
        """Remove the delivery annotations from the frame to forward (section 3.2.2)."""
        frame = self.frame
        self.left_out = bytes(memoryview(frame.octets)[self.cut_at : self.cut_end])
        if self.cut_at == frame.payload_at:
            frame.payload_at = self.cut_end
        elif self.cut_end == frame.end:
            frame.end = self.cut_at
        else:
            view = memoryview(frame.octets)
            head = bytes(view[frame.payload_at : self.cut_at])
            self.frame = frame.with_payload(head + bytes(view[self.cut_end : frame.end]))
            moved = len(head) - self.cut_end
            if self.annotations_end:
                self.annotations_at += moved
                self.annotations_end += moved

    def _begin(self, frame: TransferFrame, at: int) -> int:
        """Read the descriptor of the section at `at`; return the position of the section's value.

        Returns INCOMPLETE if the frame ends within the descriptor, and WRONG if the section is not
        allowed at this position.
        """
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
            self.problem = f"descriptor 0x{code:02x} does not name a section"
            return WRONG
        if code <= before and not (code == before and (code == DATA or code == AMQP_SEQUENCE)):
            self.problem = f"{_name(code)} after {_name(before)}"
            return WRONG
        if before >= DATA and code != before and code != FOOTER:
            self.problem = f"{_name(code)} after {_name(before)}: a body has one kind of section"
            return WRONG
        self.section = code
        self.values = 1
        if code == DELIVERY_ANNOTATIONS:
            self.cut_at = at
        elif code == MESSAGE_ANNOTATIONS:
            self.annotations_at = following
        return following

    def _long_descriptor(self, frame: TransferFrame, at: int) -> int:
        """Read a long descriptor, of eight octets or a symbol, into `long_code`.

        Returns the position after the descriptor, INCOMPLETE or WRONG, like `_begin`.
        """
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
            self.problem = f"a descriptor of {size} octets does not name a section"
            return WRONG
        if frame.end - at < size:
            return INCOMPLETE
        name = bytes(memoryview(frame.octets)[at : at + size]).decode("latin-1")
        self.long_code = int(SECTION_NAMES.get(name, 0))
        return at + size

    def _begin_value(self, frame: TransferFrame, at: int) -> int:
        """Step over a value's constructor and size, and set `skip` to the value's length."""
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
    """Return whether a frame is certainly a complete, valid message to be forwarded unchanged.

    This is a quick check, which most messages pass. It returns False for long descriptors, delivery
    annotations, the router's own annotations, or a body of several sections: then a `SectionScan`
    has to decide.
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
        value_at = at + 3
        if category == 0xA or category == 0xC:
            at += 5 + frame.octets[at + 4]
        elif (category == 0xB or category == 0xD) and end - at >= 8:
            at += 8 + octets.read_u32(frame.octets, at + 4)
        else:
            return False
        if code == MESSAGE_ANNOTATIONS and (at > end or not have_no_own_keys(frame, value_at, at)):
            return False
        before = code
    return at == end


def priority_in(frame: TransferFrame) -> int:
    """Return the priority in a message's header, 0 to 9; 4 if there is none (section 3.2.1).

    The frame must contain the whole header. This function is faster than `peek.find_header`.
    """
    at = frame.payload_at
    end = frame.end
    if end - at < 3 or frame.octets[at] != 0x00 or frame.octets[at + 1] != 0x53:
        return _priority_elsewhere(frame)
    if frame.octets[at + 2] != HEADER:
        return PRIORITY
    if end - at < 9 or frame.octets[at + 3] != 0xC0 or frame.octets[at + 5] < 2:
        return _priority_elsewhere(frame)
    size = frame.octets[at + 4]
    if at + 5 + size > end or frame.octets[at + 5] >= size:
        return _priority_elsewhere(frame)
    end = at + 5 + size
    durable = frame.octets[at + 6]
    if 0x40 <= durable <= 0x42:
        at += 7
    elif durable == 0x56:
        at += 8
    else:
        return _priority_elsewhere(frame)
    if at + 2 > end or frame.octets[at] != 0x50:
        return _priority_elsewhere(frame)
    priority: int = min(frame.octets[at + 1], 9)
    return priority


def _priority_elsewhere(frame: TransferFrame) -> int:
    header = find_header(frame.octets, frame.payload_at, frame.end)
    priority: int = PRIORITY if header is None else header.priority
    return priority


def _is_allowed(section: int, constructor: int) -> bool:
    """Return whether the value of a section may begin with a constructor."""
    if section == AMQP_VALUE:
        return constructor >= 0x40
    if section == HEADER or section == PROPERTIES or section == AMQP_SEQUENCE:
        return constructor == 0xC0 or constructor == 0xD0 or constructor == 0x45
    if section == DATA:
        return constructor == 0xA0 or constructor == 0xB0
    return constructor == 0xC1 or constructor == 0xD1


def _name(section: int) -> str:
    """Return the name of a section, for error texts."""
    if section == 0:
        return "the beginning"
    return f"the {Descriptor(section).name.lower().replace('_', '-')} section"
