cimport cython
from router.amqp cimport octets
from router.amqp.reading cimport TransferFrame

cdef Py_ssize_t PREFIX_BYTES
cdef unsigned long long PREFIX_HEAD
cdef int FULL_STOP
cdef int MAP8
cdef int DESCRIBED
cdef Py_ssize_t OUTSIDE

@cython.locals(left=Py_ssize_t, count=Py_ssize_t)
cpdef bint have_no_own_keys(TransferFrame frame, Py_ssize_t at, Py_ssize_t end) except -1

@cython.locals(constructor=int)
cdef bint _is_own(TransferFrame frame, Py_ssize_t at, Py_ssize_t end) except -1

@cython.locals(values=Py_ssize_t, constructor=int, category=int)
cdef Py_ssize_t _step(TransferFrame frame, Py_ssize_t at, Py_ssize_t end) except -2
