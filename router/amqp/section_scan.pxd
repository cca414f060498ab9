cimport cython
from router.amqp cimport octets
from router.amqp.annotations cimport have_no_own_keys
from router.amqp.reading cimport TransferFrame

cdef int HEADER
cdef int PRIORITY
cdef int DELIVERY_ANNOTATIONS
cdef int MESSAGE_ANNOTATIONS
cdef int PROPERTIES
cdef int DATA
cdef int AMQP_SEQUENCE
cdef int AMQP_VALUE
cdef int FOOTER
cdef Py_ssize_t INCOMPLETE
cdef Py_ssize_t WRONG
cdef Py_ssize_t LONGEST_NAME

@cython.final
cdef class SectionScan:
    cdef public int section
    cdef public Py_ssize_t skip
    cdef public Py_ssize_t values
    cdef public bytes pending
    cdef public str problem
    cdef public TransferFrame frame
    cdef public int long_code
    cdef public bint is_headed
    cdef public Py_ssize_t annotations_at
    cdef public Py_ssize_t annotations_end
    cdef public Py_ssize_t cut_at
    cdef public Py_ssize_t cut_end
    cdef public bytes left_out

    cpdef int start(self) except -1
    @cython.locals(sent_on=TransferFrame, at=Py_ssize_t, end=Py_ssize_t, following=Py_ssize_t)
    cpdef bint feed(self, TransferFrame frame) except -1
    cpdef bint finish(self) except -1
    cdef int _look_at_head(self, TransferFrame frame) except -1
    cdef int _await_head(self, TransferFrame frame) except -1
    cdef TransferFrame _joined(self, TransferFrame frame)
    cdef int _note_end(self, Py_ssize_t at) except -1
    @cython.locals(moved=Py_ssize_t)
    cdef int _leave_out(self) except -1
    @cython.locals(code=int, before=int, following=Py_ssize_t)
    cdef Py_ssize_t _begin(self, TransferFrame frame, Py_ssize_t at) except -3
    @cython.locals(left=Py_ssize_t, constructor=int, size=Py_ssize_t)
    cdef Py_ssize_t _long_descriptor(self, TransferFrame frame, Py_ssize_t at) except -3
    @cython.locals(section=int, constructor=int, category=int)
    cdef Py_ssize_t _begin_value(self, TransferFrame frame, Py_ssize_t at) except -3

@cython.locals(at=Py_ssize_t, end=Py_ssize_t, value_at=Py_ssize_t, before=int, code=int, constructor=int, category=int)
cpdef bint is_plain(TransferFrame frame) except -1

@cython.locals(at=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t, durable=int)
cpdef int priority_in(TransferFrame frame) except -1

cdef int _priority_elsewhere(TransferFrame frame) except -1

cdef bint _is_allowed(int section, int constructor) except -1
