cimport cython
from router.amqp cimport codes

@cython.final
cdef class Counters:
    cdef public unsigned long long ingress
    cdef public unsigned long long egress
    cdef public unsigned long long bytes_in
    cdef public unsigned long long bytes_out
    cdef public unsigned long long presettled
    cdef public unsigned long long dropped_presettled
    cdef public unsigned long long redelivered
    cdef public unsigned long long accepted
    cdef public unsigned long long rejected
    cdef public unsigned long long released
    cdef public unsigned long long modified
    cdef public unsigned long long expired
    cdef public unsigned long long aborted
    cdef public unsigned long long no_destination
    cdef public unsigned long long shed
    cdef public unsigned long long malformed

    cpdef int count_outcome(self, int code) except -1
    cpdef int add(self, Counters other) except -1
