cimport cython
from router.engine.delivery cimport Delivery
from router.engine.link cimport IncomingLink

cdef int LEVELS
cdef int ORDINARY
cdef int HERE

@cython.final
cdef class WaitingQueue:
    cdef public Py_ssize_t count
    cdef object _ordinary
    cdef list _levels
    cdef dict _elsewhere

    @cython.locals(link=IncomingLink)
    cpdef int append(self, Delivery delivery) except -1
    @cython.locals(levels=list, level=int, taken=Delivery)
    cpdef Delivery popleft(self)
    @cython.locals(levels=list, level=int)
    cpdef int top(self) except -2
    cpdef bint remove(self, Delivery delivery) except -1
    cpdef int clear(self) except -1
    cpdef dict by_side(self)
    cpdef void has_moved(self, int before, int side) except *
    @cython.locals(link=IncomingLink)
    cdef int _leaves(self, Delivery delivery) except -1
    @cython.locals(counts=dict, left=Py_ssize_t)
    cdef int _count_side(self, int side, Py_ssize_t count) except -1
    cdef list _queues(self)
    cdef object _level(self, int priority)
    cdef int _forget_levels(self) except -1
