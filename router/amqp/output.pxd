cimport cython
from router.amqp cimport octets

@cython.final
cdef class Output:
    cdef public unsigned char[::1] octets
    cdef public Py_ssize_t begin
    cdef public Py_ssize_t end

    cpdef int reserve(self, Py_ssize_t count) except -1
    @cython.locals(held=Py_ssize_t, size=Py_ssize_t, target=cython.uchar[::1])
    cdef int _grow(self, Py_ssize_t count) except -1
    cpdef Py_ssize_t size(self) except -1
    cpdef int sent(self, Py_ssize_t count) except -1
    cpdef int trim(self) except -1
    cpdef int clear(self) except -1
    @cython.locals(count=Py_ssize_t)
    cpdef int append(self, const unsigned char[::1] data) except -1
