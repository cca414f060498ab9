cimport cython
from router.amqp cimport octets
from router.amqp.cursor cimport Cursor
from router.amqp.output cimport Output

cdef int TRANSFER
cdef int DISPOSITION
cdef int FLOW
cdef int NO_STATE
cdef int RECEIVED
cdef int ACCEPTED
cdef int REJECTED
cdef int RELEASED
cdef int MODIFIED
cdef int DECLARED
cdef int TRANSACTIONAL
cdef int UNREAD_STATE
cdef Py_ssize_t TRANSFER_OVERHEAD
cdef Py_ssize_t MAX_TAG_BYTES
cdef Py_ssize_t FLOW_BYTES
cdef Py_ssize_t DISPOSITION_BYTES
cdef unsigned int ABSENT

@cython.final
cdef class TransferFrame:
    cdef public const unsigned char[::1] octets
    cdef public unsigned int handle
    cdef public bint has_delivery_id
    cdef public unsigned int delivery_id
    cdef public bint has_delivery_tag
    cdef public Py_ssize_t tag_at
    cdef public Py_ssize_t tag_end
    cdef public unsigned int message_format
    cdef public bint has_settled
    cdef public bint settled
    cdef public bint more
    cdef public int rcv_settle_mode
    cdef public Py_ssize_t state_at
    cdef public Py_ssize_t state_end
    cdef public bint resume
    cdef public bint aborted
    cdef public bint batchable
    cdef public Py_ssize_t payload_at
    cdef public Py_ssize_t end

    @cython.locals(count=Py_ssize_t, list_end=Py_ssize_t, frame_end=Py_ssize_t, handle=cython.uint)
    cpdef int read(self, Cursor cursor) except -1
    cdef bint _null(self, Cursor cursor) except -1

@cython.final
cdef class DispositionFrame:
    cdef public const unsigned char[::1] octets
    cdef public bint from_receiver
    cdef public unsigned int first
    cdef public unsigned int last
    cdef public bint settled
    cdef public int state_code
    cdef public Py_ssize_t state_at
    cdef public Py_ssize_t state_end
    cdef public bint plain
    cdef public bint batchable

    @cython.locals(count=Py_ssize_t)
    cpdef int read(self, Cursor cursor) except -1
    @cython.locals(start=Py_ssize_t, code=cython.ulonglong, left=Py_ssize_t)
    cdef void _read_state(self, Cursor cursor) except *

@cython.final
cdef class FlowFrame:
    cdef public bint has_next_incoming_id
    cdef public unsigned int next_incoming_id
    cdef public unsigned int incoming_window
    cdef public unsigned int next_outgoing_id
    cdef public unsigned int outgoing_window
    cdef public bint has_handle
    cdef public unsigned int handle
    cdef public bint has_delivery_count
    cdef public unsigned int delivery_count
    cdef public bint has_link_credit
    cdef public unsigned int link_credit
    cdef public unsigned int available
    cdef public bint drain
    cdef public bint echo

    @cython.locals(count=Py_ssize_t)
    cpdef int read(self, Cursor cursor) except -1
    cdef bint _next_is_value(self, Cursor cursor) except -1
    cdef unsigned int _mandatory(self, Cursor cursor) except? 4294967295

cdef Py_ssize_t _uint_bytes(unsigned int value) except -1

cdef Py_ssize_t _put_uint(Output output, Py_ssize_t at, unsigned int value) except -1

@cython.locals(begin=Py_ssize_t, at=Py_ssize_t)
cpdef int write_transfer(
    Output output, unsigned int channel, unsigned int handle, bint first, unsigned int delivery_id,
    bytes tag, unsigned int message_format, bint settled, bint more, bint aborted,
    const unsigned char[::1] payload, Py_ssize_t start, Py_ssize_t count,
) except -1

@cython.locals(begin=Py_ssize_t, at=Py_ssize_t, wide=bint)
cpdef int write_disposition(
    Output output, unsigned int channel, bint from_receiver, unsigned int first, unsigned int last,
    bint settled, int state_code, const unsigned char[::1] state, Py_ssize_t start, Py_ssize_t count,
) except -1

@cython.locals(begin=Py_ssize_t, at=Py_ssize_t)
cpdef int write_flow(
    Output output, unsigned int channel, unsigned int next_incoming_id, unsigned int incoming_window,
    unsigned int next_outgoing_id, unsigned int outgoing_window, bint has_link, unsigned int handle,
    unsigned int delivery_count, unsigned int link_credit, unsigned int available, bint drain, bint echo,
) except -1
