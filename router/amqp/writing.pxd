cimport cython
from router.amqp cimport codes, octets

cdef Py_ssize_t TRANSFER_OVERHEAD
cdef Py_ssize_t FLOW_BYTES
cdef Py_ssize_t DISPOSITION_BYTES
cdef unsigned long long TRANSFER_HEAD
cdef unsigned long long NO_FLAGS
cdef unsigned long long SETTLED
cdef unsigned long long MORE
cdef unsigned long long ABORTED
cdef unsigned long long BATCHABLE
cdef Py_ssize_t FIRST_BYTES
cdef Py_ssize_t KEEP_BYTES

@cython.final
cdef class Output:
    cdef public unsigned char[::1] octets
    cdef public Py_ssize_t begin
    cdef public Py_ssize_t end

    cpdef int reserve(self, Py_ssize_t count) except -1
    @cython.locals(held=Py_ssize_t, size=Py_ssize_t, target=cython.uchar[::1])
    cdef int _grow(self, Py_ssize_t count) except -1
    cpdef Py_ssize_t size(self) except -1
    cpdef Py_ssize_t capacity(self) except -1
    cpdef int sent(self, Py_ssize_t count) except -1
    cpdef int trim(self) except -1
    cpdef int clear(self) except -1
    @cython.locals(count=Py_ssize_t)
    cpdef int append(self, const unsigned char[::1] data) except -1

cdef Py_ssize_t _uint_bytes(unsigned int value) except -1

cdef Py_ssize_t _put_uint(Output output, Py_ssize_t at, unsigned int value) except -1

@cython.locals(begin=Py_ssize_t, at=Py_ssize_t, head=cython.ulonglong, flags=cython.ulonglong)
cpdef int write_transfer(
    Output output, unsigned int channel, unsigned int handle, bint first, unsigned int delivery_id,
    bytes tag, int tag_size, unsigned long long tag_word, unsigned int message_format, bint settled, bint more, bint aborted,
    const unsigned char[::1] payload, Py_ssize_t start, Py_ssize_t count, bint batchable=*,
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
