cimport cython
from router.amqp cimport octets

cdef unsigned long long NO_VALUE

cpdef malformed(str what)

@cython.final
cdef class Cursor:
    cdef public const unsigned char[::1] octets
    cdef public Py_ssize_t at
    cdef public Py_ssize_t end
    cdef public Py_ssize_t value_at
    cdef public Py_ssize_t value_end

    cpdef int move(self, const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef int take_u8(self) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef unsigned int take_u32(self) except? 4294967295
    @cython.locals(at=Py_ssize_t)
    cpdef unsigned long long take_u64(self) except? 4294967295
    cpdef int advance(self, Py_ssize_t count) except -1
    @cython.locals(start=Py_ssize_t, code=int)
    cpdef unsigned long long take_descriptor(self) except? 4294967295
    @cython.locals(constructor=int, size=Py_ssize_t, count=Py_ssize_t)
    cpdef Py_ssize_t enter_list(self) except -1
    @cython.locals(constructor=int)
    cpdef unsigned int take_uint(self, unsigned int absent) except? 4294967295
    @cython.locals(constructor=int)
    cpdef int take_ubyte(self, int absent) except? -2
    @cython.locals(constructor=int, octet=int)
    cpdef bint take_boolean(self, bint absent) except -1
    @cython.locals(constructor=int, size=Py_ssize_t)
    cpdef bint take_binary(self) except -1
    @cython.locals(constructor=int, size=Py_ssize_t)
    cpdef bint take_string(self) except -1
    @cython.locals(constructor=int)
    cpdef int skip(self) except -1
    @cython.locals(category=int)
    cdef int _skip_plain(self, int constructor) except -1
