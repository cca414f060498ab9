cimport cython
from router.amqp.annotations cimport have_no_own_keys
from router.amqp.reading cimport TransferFrame
from router.amqp.section_scan cimport SectionScan, is_plain
from router.engine.delivery cimport Delivery

@cython.final
cdef class Intake:
    cdef public SectionScan spare
    cdef public str problem
    cdef public object condition
    cdef public Py_ssize_t held_bytes
    cdef public Py_ssize_t limit_bytes

    cpdef TransferFrame begin(self, Delivery delivery, TransferFrame frame)
    @cython.locals(scan=SectionScan, sound=TransferFrame)
    cdef TransferFrame _scan(self, Delivery delivery, TransferFrame frame)
    @cython.locals(scan=SectionScan)
    cpdef TransferFrame follow(self, Delivery delivery, TransferFrame frame)
    @cython.locals(scan=SectionScan)
    cpdef int forget(self, Delivery delivery) except -1
    @cython.locals(count=Py_ssize_t)
    cdef int _hold(self, Delivery delivery, SectionScan scan) except -1
    cdef int _refuse(self, Delivery delivery, object condition, str problem) except -1
