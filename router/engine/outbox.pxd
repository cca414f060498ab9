cimport cython
from router.amqp.writing cimport Output

cdef Py_ssize_t CONGESTED_BYTES

@cython.final
cdef class Turn:
    cdef public double now
    cdef public list touched
    cdef public bint is_pressed
    cdef public object deferred
    cdef public object ledger
    cdef public long long lendable_bytes

@cython.final
cdef class Outbox:
    cdef public Turn turn
    cdef public object connection
    cdef public Output output
    cdef public bint in_turn
    cdef public bint congested
    cdef public object blocked_links

    cpdef int touch(self) except -1
    cpdef bint relieve(self) except -1
    cpdef int close(self) except -1
