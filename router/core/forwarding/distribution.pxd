cimport cython
from router.amqp cimport codes
from router.amqp.reading cimport TransferFrame
from router.amqp.section_scan cimport priority_in
from router.core.model.address cimport Address, Consumer, Producer, RelatedAddresses, gets_multicast_from
from router.core.model.backlog cimport Backlog
from router.core.model.counters cimport Counters
from router.core.forwarding.queue_service cimport QueueService
from router.core.forwarding.relaying cimport Relay
from router.core.forwarding.settlement cimport Settler
from router.engine cimport tags
from router.engine.delivery cimport Delivery
from router.engine.link cimport IncomingLink, OutgoingLink
from router.engine.session cimport Session

cdef int MULTICAST
cdef int HERE
cdef int CLOSEST
cdef int ORDINARY
cdef int LEVELS
cdef int LANES_PER_PRIORITY
cdef int SECOND_LANES
cdef Py_ssize_t COPIES_AT_ONCE

@cython.final
cdef class Distributor:
    cdef object core
    cdef Backlog backlog
    cdef Settler settlement
    cdef QueueService queues
    cdef Relay relay
    cdef Producer _from_here
    cdef public Py_ssize_t copies_at_once
    cdef public object pending_copies

    @cython.locals(consumers=list, count=Py_ssize_t, at=Py_ssize_t, fewest=Py_ssize_t, best=Consumer, consumer=Consumer, link=OutgoingLink, session=Session)
    cpdef Consumer choose(self, Address address, unsigned long long size)
    @cython.locals(consumers=list, count=Py_ssize_t, at=Py_ssize_t, chosen_at=Py_ssize_t, least=cython.longlong, value=cython.longlong, best=Consumer, consumer=Consumer, link=OutgoingLink, session=Session)
    cpdef Consumer choose_across(self, Address address, unsigned long long size, int side, int lane)
    @cython.locals(priority=int, stripe=int, lane=int, link=IncomingLink)
    cdef int lane_for(self, Address address, Delivery delivery, Producer producer, TransferFrame frame) except -1
    @cython.locals(link=IncomingLink, each=Producer, counts=list, least=int, stripe=int)
    cdef int take_stripe(self, Address address, Producer producer) except -1
    cpdef bint open_lane(self, Address address, int lane) except -1
    cpdef bint has_receiver(self, Address address, int side) except -1
    @cython.locals(consumer=Consumer, link=OutgoingLink)
    cdef bint has_taker(self, Address address, unsigned long long size, int side) except -1
    cpdef bint open_route(self, Address address, int side) except -1
    @cython.locals(link=IncomingLink, producer=Producer, consumers=list)
    cdef void fan_out(self, Address address, Delivery delivery, TransferFrame frame) except *
    @cython.locals(consumer=Consumer, is_for_any=bint)
    cdef bint _spreads(self, Address address, Producer producer) except -1
    @cython.locals(remote_ends=Py_ssize_t, consumer=Consumer, link=OutgoingLink, session=Session, has_room=bint, copy=Delivery)
    cpdef int copy_to_each(self, Address address, list consumers, Delivery delivery, TransferFrame frame, list copies, Producer producer) except -1
    @cython.locals(consumer=Consumer, copy=Delivery, link=IncomingLink, lane=int)
    cpdef int copy_to_one(self, Address address, Delivery delivery, TransferFrame frame, list copies) except -1
    @cython.locals(copy=Delivery)
    cdef Delivery _copy(self, Address address, Delivery delivery)
    cdef void _copied(self, Address address, Delivery delivery, list copies) except *
    @cython.locals(link=OutgoingLink, current=Delivery)
    cdef bint _is_worth_keeping(self, Consumer consumer, Delivery delivery) except -1
    @cython.locals(place=Address, found=Address, sender=Producer, places=list, copies=list, count=Py_ssize_t)
    cdef Address follow_ties(self, Address address, Delivery delivery, Producer producer, TransferFrame frame)
    @cython.locals(copy=Delivery)
    cpdef int follow_some(self, Delivery delivery, list copies, TransferFrame frame) except -1
    @cython.locals(consumer=Consumer)
    cpdef int count_copy_wait(self, Delivery copy) except -1
    cpdef int no_destination(self, Address address, Delivery delivery) except -1

@cython.locals(link=OutgoingLink, count=cython.longlong)
cdef long long unsettled_of(Consumer consumer) except -1
