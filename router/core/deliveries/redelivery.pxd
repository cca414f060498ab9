cimport cython
from router.amqp cimport codes
from router.amqp.reading_disposition cimport DispositionFrame
from router.core.model.address cimport Address, Consumer
from router.engine.delivery cimport Delivery
from router.engine.outbox cimport Turn

cdef Py_ssize_t MAX_BYTES

@cython.final
cdef class KeptMessage:
    cdef public bytes octets
    cdef public double since
    cdef public list tried

@cython.final
cdef class Redelivery:
    cdef public Turn turn
    cdef public Py_ssize_t kept_bytes
    cdef public Py_ssize_t limit_bytes

    @cython.locals(count=Py_ssize_t, kept=KeptMessage)
    cpdef void keep(self, Delivery delivery, const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end) except *
    @cython.locals(kept=KeptMessage)
    cpdef int drop(self, Delivery delivery) except -1
    @cython.locals(code=int)
    cpdef bint handle_disposition(self, object core, Delivery delivery, DispositionFrame frame) except -1

@cython.locals(parent=Delivery)
cpdef bint awaits_outcome(Delivery delivery) except -1
