cimport cython
from router.engine.delivery cimport Delivery

cdef Py_ssize_t WIDTH
cdef unsigned long long NOTHING
cdef Py_ssize_t MOST_EXAMINED
cdef Py_ssize_t FEW_STALE
cdef Py_ssize_t ENTRIES_AS_ONE

cdef class Blocks

@cython.final
cdef class SizeIndex:
    cdef public Py_ssize_t examined
    cdef public bint is_unfinished
    cdef dict _blocks

    @cython.locals(blocks=Blocks, begun=Py_ssize_t)
    cpdef Delivery first(self, object waiting, object queue, unsigned long long limit)
    @cython.locals(blocks=Blocks)
    cpdef void append(self, Py_ssize_t count, object queue, Delivery delivery) except *
    @cython.locals(blocks=Blocks)
    cpdef void drop_departed(self, object waiting, object queue) except *
    cpdef int forget(self, object queue) except -1

@cython.final
cdef class Blocks:
    cdef public object queue
    cdef public Py_ssize_t examined
    cdef public bint is_unfinished
    cdef list _entries
    cdef Py_ssize_t _begin
    cdef list _levels

    @cython.locals(at=Py_ssize_t, size=cython.ulonglong, level=list)
    cpdef int append(self, Delivery delivery) except -1
    cpdef bint is_stale(self, Py_ssize_t count) except -1
    @cython.locals(entries=list, delivery=Delivery)
    cpdef int drop_departed(self, object waiting) except -1
    @cython.locals(block=Py_ssize_t, found=Delivery)
    cpdef Delivery first(self, object waiting, unsigned long long limit)
    @cython.locals(begin=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, number=Py_ssize_t, level=list, size=cython.ulonglong, least=cython.ulonglong)
    cdef Py_ssize_t _block(self, unsigned long long limit) except -3
    @cython.locals(entries=list, delivery=Delivery, begin=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, least=cython.ulonglong)
    cdef Delivery _in_block(self, object waiting, Py_ssize_t block, unsigned long long limit)
