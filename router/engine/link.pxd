cimport cython
from router.amqp cimport codes
from router.amqp.reading_flow cimport FlowFrame
from router.engine cimport serial

cdef int ATTACHED
cdef int ATTACH_RCVD
cdef int DETACHED
cdef long long MAX_CREDIT
cdef int ORDINARY
cdef double DELAY_S
cdef double LONG_S

cdef class Link:
    cdef public object session
    cdef public str name
    cdef public unsigned int handle
    cdef public long long remote_handle
    cdef public int state
    cdef public object attach
    cdef public object remote_attach
    cdef public object owner
    cdef public object terminus
    cdef public Py_ssize_t charged
    cdef public bint is_routed
    cdef public tuple flow_extras
    cdef public unsigned int delivery_count
    cdef public unsigned int credit
    cdef public bint drain
    cdef public Py_ssize_t unsettled
    cdef public object current
    cdef public object blocked_in
    cdef public int blocked_level
    cdef public bint flow_due
    cdef public bint closes
    cdef public object close_error
    cdef public long long number
    cdef public double no_credit_since
    cdef public unsigned long long deliveries
    cdef public unsigned long long presettled
    cdef public unsigned long long dropped_presettled
    cdef public unsigned long long accepted
    cdef public unsigned long long rejected
    cdef public unsigned long long released
    cdef public unsigned long long modified
    cdef public unsigned long long delayed_1s
    cdef public unsigned long long delayed_10s
    cdef public Py_ssize_t stuck
    cdef public tuple samples
    cdef public unsigned int sampled_in

    cpdef int count_outcome(self, int code, unsigned long long count) except -1
    cpdef int count_delay(self, double age_s, unsigned long long count) except -1
    cpdef bint is_attached(self) except -1
    cpdef bint is_lost(self) except -1
    cpdef int drop(self) except -1
    cpdef int release(self) except -1

@cython.final
cdef class IncomingLink(Link):
    cdef public unsigned long long max_message_size
    cdef public bint settles_second
    cdef public unsigned long long overdraft
    cdef public unsigned int least_overdraft
    cdef public long long announced_available
    cdef public unsigned int announced_at
    cdef public bint drain_unanswered
    cdef public int side
    cdef public bytes returned_as

    cpdef bint overdraws(self) except -1
    @cython.locals(used=cython.longlong)
    cdef int apply_flow(self, FlowFrame frame) except -1
    @cython.locals(came=cython.longlong)
    cpdef Py_ssize_t available(self) except -1

@cython.final
cdef class OutgoingLink(Link):
    cdef public unsigned long long max_message_size
    cdef public unsigned int initial_count
    cdef public bint presettles
    cdef public int urgency
    cdef public bint drain_due
    cdef public int tag_size
    cdef public unsigned long long greatest_tag
    cdef public unsigned long long greatest_mirrored
    cdef public set long_tags
    cdef public int own_tag_bytes
    cdef public bint omits_errors
    cdef public object outcome_terms

    @cython.locals(credit=cython.longlong, start=cython.uint)
    cdef int apply_flow(self, FlowFrame frame) except -1
