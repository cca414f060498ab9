cimport cython
from router.engine.outbox cimport Turn

cdef long long MOST_BYTES
cdef long long LEAST_BYTES
cdef long long LEAST_FRAMES
cdef long long LEAST_PART
cdef double PATIENCE_S

@cython.final
cdef class IncomingWindow:
    cdef public long long limit
    cdef public long long share
    cdef public long long grown
    cdef public long long borrowed
    cdef public long long held_frames
    cdef public long long frame_bytes
    cdef public long long largest_bytes
    cdef public long long least_frame_bytes
    cdef public long long size
    cdef public long long mark
    cdef public bint is_moving
    cdef public double delayed_since

    cpdef bint spend(self, long long count) except -1
    @cython.locals(window=cython.longlong, frame_bytes=cython.longlong, octets=cython.longlong)
    cpdef long long whole(self) except *
    cpdef long long affordable(self) except *
    @cython.locals(window=cython.longlong)
    cpdef int widen(self, long long share, dict links) except -1
    @cython.locals(lendable=cython.longlong, grown=cython.longlong, lent=cython.longlong, granted=cython.longlong)
    cpdef int stretch(self, Turn turn, long long share, long long most, bint is_large) except -1
    cpdef int give_back(self, Turn turn) except -1
    @cython.locals(whole=cython.longlong, gain=cython.longlong)
    cpdef bint can_open(self, dict links) except -1
    cpdef bint has_waited(self, double now) except -1

@cython.locals(half=Py_ssize_t, least=Py_ssize_t)
cpdef Py_ssize_t share_of(Py_ssize_t limit_bytes, Py_ssize_t sessions, bint is_scarce) except -1
