cimport cython
from router.amqp.reading cimport Cursor, malformed

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
    cdef public Py_ssize_t properties_at
    cdef public Py_ssize_t properties_end

    @cython.locals(count=Py_ssize_t)
    cpdef int read(self, Cursor cursor) except -1
    cdef unsigned int _mandatory(self, Cursor cursor) except? 4294967295
