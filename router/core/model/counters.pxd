cimport cython
from router.amqp cimport codes
from router.core.model.histogram cimport Histogram

cdef double DELAY_S
cdef double LONG_S

@cython.final
cdef class Counters:
    cdef public unsigned long long ingress
    cdef public unsigned long long egress
    cdef public unsigned long long bytes_in
    cdef public unsigned long long bytes_out
    cdef public unsigned long long from_routers
    cdef public unsigned long long to_routers
    cdef public unsigned long long from_containers
    cdef public unsigned long long to_containers
    cdef public unsigned long long presettled
    cdef public unsigned long long dropped_presettled
    cdef public unsigned long long redirected
    cdef public unsigned long long redelivered
    cdef public unsigned long long accepted
    cdef public unsigned long long rejected
    cdef public unsigned long long released
    cdef public unsigned long long modified
    cdef public unsigned long long told_accepted
    cdef public unsigned long long told_rejected
    cdef public unsigned long long told_released
    cdef public unsigned long long told_modified
    cdef public unsigned long long delayed_1s
    cdef public unsigned long long delayed_10s
    cdef public Histogram forward_latency
    cdef public Histogram settle_latency
    cdef public unsigned long long expired
    cdef public unsigned long long aborted
    cdef public unsigned long long no_destination
    cdef public unsigned long long shed
    cdef public unsigned long long malformed
    cdef public unsigned long long receivers_dropped

    cpdef int count_outcome(self, int code, unsigned long long count=*) except -1
    cpdef int count_told(self, int code, double age_s, unsigned long long count) except -1
    cpdef int count_forwarded(self, double age_s, unsigned long long count) except -1
    cpdef int count_delay(self, double age_s, unsigned long long count) except -1
    cpdef int add(self, Counters other) except -1
