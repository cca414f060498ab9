cimport cython
from router.amqp cimport codes
from router.core.deliveries cimport sampling
from router.core.model.address cimport Address
from router.core.model.counters cimport Counters
from router.core.deliveries.sampling cimport Sampler
from router.engine.delivery cimport Delivery
from router.engine.link cimport IncomingLink, OutgoingLink
from router.engine.outbox cimport Turn

@cython.final
cdef class OutcomeCounter:
    cdef public Turn turn
    cdef public IncomingLink incoming
    cdef public OutgoingLink outgoing
    cdef public Address address
    cdef public int code
    cdef public double arrived
    cdef public unsigned long long count
    cdef public Sampler sampler
    cdef public object observer
    cdef public IncomingLink expired_in
    cdef public Address expired_at
    cdef public long expired_count

    cpdef int count_settled(self, Delivery delivery, int code) except -1
    @cython.locals(count=cython.ulonglong, age_s=cython.double, counters=Counters, incoming=IncomingLink, outgoing=OutgoingLink, address=Address)
    cpdef int end_run(self) except -1
    @cython.locals(address=Address, counters=Counters, link=OutgoingLink)
    cpdef int count_for_receiver(self, Delivery delivery, int code) except -1
    @cython.locals(age_s=cython.double, address=Address, counters=Counters, link=IncomingLink)
    cpdef int count_for_sender(self, Delivery delivery, int code) except -1
    @cython.locals(address=Address, counters=Counters)
    cpdef void expired(self, Delivery delivery) except *
    @cython.locals(count=cython.long, link=IncomingLink, address=Address)
    cdef void _end_expired(self) except *
    cdef void _record(self, Delivery delivery, int code) except *
    cpdef void record_own_outcome(self, Delivery delivery, int code, bytes state) except *
    cpdef void aborted(self, Delivery delivery) except *
