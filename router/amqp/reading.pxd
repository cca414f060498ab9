cimport cython
from router.amqp cimport octets

cdef Py_ssize_t MAX_TAG_BYTES
cdef unsigned long long NULLS
cdef unsigned long long NO_FLAGS
cdef unsigned long long EACH_OCTET
cdef unsigned long long SETTLED
cdef unsigned long long MORE
cdef unsigned long long RESUME
cdef unsigned long long ABORTED
cdef unsigned long long BATCHABLE
cdef unsigned long long NO_VALUE

cpdef malformed(str what)

@cython.final
cdef class Cursor:
    cdef public const unsigned char[::1] octets
    cdef public Py_ssize_t at
    cdef public Py_ssize_t end
    cdef public Py_ssize_t value_at
    cdef public Py_ssize_t value_end

    cpdef int move(self, const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end) except -1
    cpdef bint take_null(self) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int take_u8(self) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef unsigned int take_u32(self) except? 4294967295
    @cython.locals(at=Py_ssize_t)
    cpdef unsigned long long take_u64(self) except? 4294967295
    cpdef int advance(self, Py_ssize_t count) except -1
    @cython.locals(start=Py_ssize_t, code=int)
    cpdef unsigned long long take_descriptor(self) except? 4294967295
    @cython.locals(
        at=Py_ssize_t, left=Py_ssize_t, constructor=int, size=Py_ssize_t, count=Py_ssize_t,
    )
    cpdef Py_ssize_t enter_list(self) except -1
    @cython.locals(at=Py_ssize_t, left=Py_ssize_t, constructor=int)
    cpdef unsigned int take_uint(self, unsigned int absent) except? 4294967295
    @cython.locals(constructor=int)
    cpdef int take_ubyte(self, int absent) except? -2
    @cython.locals(at=Py_ssize_t, constructor=int, octet=int)
    cpdef bint take_boolean(self, bint absent) except -1
    @cython.locals(at=Py_ssize_t, left=Py_ssize_t, constructor=int, size=Py_ssize_t)
    cpdef bint take_binary(self) except -1
    @cython.locals(constructor=int, size=Py_ssize_t)
    cpdef bint take_string(self) except -1
    @cython.locals(constructor=int)
    cpdef int skip(self) except -1
    @cython.locals(category=int)
    cdef int _skip_plain(self, int constructor) except -1

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
    cdef public bint settled
    cdef public bint more
    cdef public int rcv_settle_mode
    cdef public Py_ssize_t state_at
    cdef public Py_ssize_t state_end
    cdef public bint resume
    cdef public bint aborted
    cdef public bint batchable
    cdef public bint is_unusual
    cdef public Py_ssize_t payload_at
    cdef public Py_ssize_t end

    @cython.locals(count=Py_ssize_t, list_end=Py_ssize_t, frame_end=Py_ssize_t, at=Py_ssize_t)
    cpdef int read(self, Cursor cursor) except -1
    @cython.locals(given=Py_ssize_t, word=cython.ulonglong)
    cdef bint _read_flags(self, Cursor cursor, Py_ssize_t count) except -1
    cdef int _read_rest(self, Cursor cursor, Py_ssize_t count) except -1
    @cython.locals(other=TransferFrame)
    cpdef TransferFrame with_payload(self, bytes payload)
