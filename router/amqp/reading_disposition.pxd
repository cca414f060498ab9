cimport cython
from router.amqp cimport codes
from router.amqp.reading cimport Cursor, malformed

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
    @cython.locals(copy=DispositionFrame)
    cpdef DispositionFrame copy(self)
    @cython.locals(start=Py_ssize_t, code=cython.ulonglong, left=Py_ssize_t, is_outcome=bint)
    cdef void _read_state(self, Cursor cursor) except *
