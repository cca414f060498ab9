cimport cython
from router.engine.delivery cimport Delivery

cdef int LEVELS
cdef int ORDINARY

@cython.final
cdef class WaitingQueue:
    cdef public Py_ssize_t count
    cdef object _ordinary
    cdef list _levels

    cpdef int append(self, Delivery delivery) except -1
    @cython.locals(levels=list, level=int, taken=Delivery)
    cpdef Delivery popleft(self)
    cpdef bint remove(self, Delivery delivery) except -1
    cpdef int clear(self) except -1
    cdef list _queues(self)
    cdef object _level(self, int priority)
    cdef int _forget_levels(self) except -1
