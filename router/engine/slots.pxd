cimport cython

cdef Py_ssize_t NEAR

@cython.final
cdef class Slots:
    cdef public list near
    cdef public dict far
    cdef public Py_ssize_t count

    cpdef object find(self, Py_ssize_t number)
    cpdef void put(self, Py_ssize_t number, object thing) except *
    cpdef int remove(self, Py_ssize_t number) except -1
    cpdef int clear(self) except -1
