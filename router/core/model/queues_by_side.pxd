cimport cython
from router.engine.delivery cimport Delivery

cdef int LEVEL_BITS
cdef int LANE_BITS
cdef int GROUP_BITS
cdef long long LEVEL_MASK
cdef long long GROUP_MASK
cdef Py_ssize_t MOST_EMPTY

@cython.final
cdef class QueuesBySide:
    cdef public Py_ssize_t count
    cdef public dict queues
    cdef public Py_ssize_t examined
    cdef dict _orders
    cdef long long _made

    @cython.locals(order=list)
    cpdef void append(self, long long number, Delivery delivery) except *
    cpdef int note_removed(self) except -1
    cpdef list groups(self)
    @cython.locals(order=list, came=cython.double, made=cython.longlong, number=cython.longlong, head=Delivery)
    cpdef object first(self, long long group, set sides, list aside)
    cpdef void put_aside(self, long long group, list aside) except *
    cpdef void put_back(self, long long group, list aside) except *
    @cython.locals(highest=int, level=int, group=cython.longlong)
    cpdef int top(self, unsigned long long takes) except -2

cpdef int level_of(long long group) except? -1

cpdef int lane_of(long long group) except? -1

cpdef long long number_in(long long group, long long side) except? -1

cpdef long long number_of(Delivery delivery, long long side) except? -1
