cimport cython
from router.amqp cimport codes
from router.amqp.reading_disposition cimport DispositionFrame
from router.engine cimport serial
from router.engine.delivery cimport Delivery
from router.engine.handler cimport Handler
from router.engine.session cimport Session
from router.engine.unsettled cimport Unsettled

cdef long long WORK
cdef long long STEP

@cython.final
cdef class RestOfRange:
    cdef public Session session
    cdef public DispositionFrame frame
    cdef public list stragglers
    cdef public Py_ssize_t taken
    cdef public unsigned int number
    cdef public long long count

    cpdef bint go_on(self) except -1

@cython.locals(unsettled=Unsettled, rest=RestOfRange)
cpdef void process(Session session, DispositionFrame frame) except *
@cython.locals(
    session=Session, frame=DispositionFrame, unsettled=Unsettled,
    straggler=cython.uint, number=cython.uint, count=cython.longlong, few=cython.longlong,
)
cpdef bint go_on(RestOfRange rest) except -1
@cython.locals(handler=Handler)
cdef int _take_state(Session session, Delivery delivery, DispositionFrame frame) except -1
