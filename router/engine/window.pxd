cimport cython

cdef long long WINDOW_BYTES
cdef long long LEAST_FRAMES

@cython.final
cdef class IncomingWindow:
    cdef public long long limit
    cdef public long long held_frames
    cdef public long long frame_bytes
    cdef public long long size
    cdef public long long mark

    cpdef bint spend(self, long long count) except -1
    @cython.locals(window=cython.longlong)
    cpdef long long affordable(self) except *
    @cython.locals(window=cython.longlong)
    cpdef int widen(self) except -1
