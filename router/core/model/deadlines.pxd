cimport cython
from router.engine.delivery cimport Delivery

cdef int TICKS_A_SECOND
cdef long long NEAR_AHEAD
cdef long long MIDDLE_TICKS
cdef long long MIDDLE_AHEAD
cdef long long FAR_TICKS
cdef long long FAR_AHEAD
cdef int MOST_AT_ONCE
cdef int SLOT_LEVELS

@cython.final
cdef class Deadlines:
    cdef public double next
    cdef public Py_ssize_t count
    cdef dict _slots
    cdef list _order
    cdef dict _checks

    @cython.locals(
        ticks=cython.longlong, ahead=cython.longlong, number=cython.longlong, level=int,
        width=cython.longlong, begin=cython.longlong, check_at=double,
    )
    cpdef void enter(self, Delivery delivery, double now, double after=*) except *
    @cython.locals(slot=dict)
    cpdef void leave(self, Delivery delivery) except *
    cpdef list take_due(self, double now)
    cpdef bint is_due(self, Delivery delivery, long long number, double now) except -1
    cdef void _left(self) except *
