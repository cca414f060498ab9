cimport cython

cdef Py_ssize_t SIZE

@cython.final
cdef class Histogram:
    cdef unsigned long long[::1] _counts
    cdef double[::1] _bounds
    cdef public double sum_s

    @cython.locals(at=Py_ssize_t)
    cpdef int observe(self, double age_s, unsigned long long count) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int add(self, Histogram other) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int subtract(self, Histogram other) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef list counts(self)
