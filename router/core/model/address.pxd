cimport cython
from router.core.model.counters cimport Counters
from router.core.model.waiting_queue cimport WaitingQueue
from router.engine.link cimport IncomingLink, OutgoingLink

cdef unsigned long long UNLIMITED

cdef class RelatedAddresses
cdef class Producer
cdef class Consumer

@cython.final
cdef class Address:
    cdef public str name
    cdef public int phase
    cdef public str key
    cdef public int treatment
    cdef public Counters counters
    cdef public list producers
    cdef public list consumers
    cdef public Py_ssize_t resumable
    cdef public dict resuming
    cdef public WaitingQueue waiting
    cdef public object limits
    cdef public object refusing
    cdef public bint redelivers
    cdef public bint keeps_octets
    cdef public Py_ssize_t rotation
    cdef public bint is_active
    cdef public unsigned long long egress_mark
    cdef public Py_ssize_t remote_ends
    cdef public unsigned long long lanes
    cdef public int priority
    cdef public double drop_after_s
    cdef public object last_dropped
    cdef public RelatedAddresses related_addresses
    cdef public Counters successor
    cdef public object transit
    cdef public bint credit_due
    cdef public object sharing
    cdef public bint is_dynamic
    cdef public object creator
    cdef public object lifetime

    cpdef int add_producer(self, Producer producer) except -1
    @cython.locals(last=Producer)
    cpdef bint remove_producer(self, Producer producer) except -1
    cpdef int add_consumer(self, Consumer consumer) except -1
    @cython.locals(last=Consumer)
    cpdef bint remove_consumer(self, Consumer consumer) except -1
    cpdef object largest_taken(self)

@cython.final
cdef class RelatedAddresses:
    cdef public Address fallback
    cdef public Address primary
    cdef public object exchange
    cdef public dict fed_by
    cdef public object sharing
    cdef public object moving
    cdef public bint is_serving
    cpdef bint is_needed(self)
    cpdef bint is_none(self)

@cython.final
cdef class Producer:
    cdef public IncomingLink link
    cdef public Address address
    cdef public Py_ssize_t place
    cdef public long long capacity
    cdef public long long low_mark
    cdef public long long waiting
    cdef public bint is_fallback
    cdef public int side
    cdef public int tree
    cdef public int stripe
    cdef public object awaits
    cdef public int enters
    cdef public bint checks_user_id
    cdef public bint splits_batches
    cdef public bint lacks_rejected

@cython.final
cdef class Consumer:
    cdef public OutgoingLink link
    cdef public Address address
    cdef public WaitingQueue waiting
    cdef public Py_ssize_t place
    cdef public bint is_resumable
    cdef public unsigned long long limit
    cdef public bint shows_passage
    cdef public bint needs_header
    cdef public bint gets_copies
    cdef public bint rejects_durable
    cdef public int side
    cdef public int tree
    cdef public long long cost
    cdef public unsigned long long lane_mask
    cdef public list sibling_lanes
    cdef public object progress
    cdef public object resuming
    cdef public bint is_later
    cdef public int passes_traces

cpdef bint gets_multicast_from(Consumer consumer, Producer producer) except -1
