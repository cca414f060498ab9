cimport cython

cdef long long MOST_BYTES
cdef long long LEAST_BYTES
cdef long long LEAST_FRAMES
cdef long long LEAST_PART

@cython.final
cdef class IncomingWindow:
    cdef public long long limit
    cdef public long long share
    cdef public long long held_frames
    cdef public long long frame_bytes
    cdef public long long least_frame_bytes
    cdef public long long size
    cdef public long long mark

    cpdef bint spend(self, long long count) except -1
    @cython.locals(window=cython.longlong, frame_bytes=cython.longlong)
    cpdef long long affordable(self) except *
    @cython.locals(window=cython.longlong)
    cpdef int widen(self, long long share, dict links) except -1
    cpdef bint can_open(self, dict links) except -1

@cython.locals(half=Py_ssize_t, least=Py_ssize_t)
cpdef Py_ssize_t share_of(Py_ssize_t limit_bytes, Py_ssize_t sessions, bint is_scarce) except -1
