cimport cython
from router.amqp cimport octets

cdef int DESCRIBED
cdef int BOOLEAN
cdef int CHAR
cdef int BINARY_8
cdef int STRING_8
cdef int STRING_32
cdef int SYMBOL_8
cdef int SYMBOL_32
cdef int MAP_8
cdef int MAP_32
cdef int ARRAY_8
cdef int ARRAY_32
cdef bytes LEAST
cdef bytes KNOWN

@cython.final
cdef class Walk:
    cdef const unsigned char[::1] view
    cdef public Py_ssize_t at
    cdef Py_ssize_t end
    cdef Py_ssize_t depth_left
    cdef public long long items_left

    @cython.locals(code=int)
    cpdef int step(self) except -1
    @cython.locals(at=Py_ssize_t)
    cpdef bint find(self, tuple keys) except -1
    @cython.locals(at=Py_ssize_t, found=list)
    cpdef list find_keys_beside(self, bytes codes)
    @cython.locals(at=Py_ssize_t, found=set)
    cpdef set read_binaries(self)
    @cython.locals(at=Py_ssize_t)
    cdef int _code(self) except -1
    @cython.locals(category=int, at=Py_ssize_t)
    cdef int _body(self, int code) except -1
    @cython.locals(point=cython.uint)
    cdef int _check_character(self, Py_ssize_t at) except -1
    @cython.locals(size=Py_ssize_t, at=Py_ssize_t)
    cdef int _variable(self, int code) except -1
    cdef Py_ssize_t _size(self, int code) except -1
    @cython.locals(width=Py_ssize_t, size=Py_ssize_t, outer_end=Py_ssize_t, inner_end=Py_ssize_t, count=Py_ssize_t)
    cdef int _compound(self, int code) except -1
    @cython.locals(left=Py_ssize_t, at=Py_ssize_t, keys=set)
    cdef int _map_items(self, Py_ssize_t count) except -1
    @cython.locals(code=int, descriptors=Py_ssize_t, least=Py_ssize_t)
    cdef int _array_items(self, Py_ssize_t count) except -1
    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t _take(self, Py_ssize_t count) except -1
    cdef int _descend(self) except -1
    cdef int _spend(self, long long count) except -1
