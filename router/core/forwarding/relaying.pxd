cimport cython
from router.amqp.reading cimport TransferFrame
from router.core.model.address cimport Address, Consumer, Producer
from router.core.model.backlog cimport Backlog
from router.core.model.counters cimport Counters
from router.core.forwarding.queue_service cimport QueueService
from router.core.deliveries.redelivery cimport Redelivery
from router.engine cimport flows
from router.engine.delivery cimport Delivery
from router.engine.blocking cimport block
from router.engine.link cimport IncomingLink, OutgoingLink
from router.engine.outbox cimport Turn
from router.engine.session cimport Session

cdef int ROUTED

@cython.final
cdef class Relay:
    cdef object core
    cdef Turn turn
    cdef Backlog backlog
    cdef QueueService queues
    cdef public list active_addresses

    @cython.locals(counters=Counters, link=IncomingLink, consumer=Consumer, outgoing=OutgoingLink, session=Session)
    cdef void begin_routed(self, Address address, Delivery delivery, TransferFrame frame) except *
    @cython.locals(link=OutgoingLink, session=Session)
    cdef int start(self, Consumer consumer, Delivery delivery, TransferFrame frame) except -1
    cdef TransferFrame _annotated(self, Consumer consumer, Delivery delivery, TransferFrame frame)
    @cython.locals(start=Py_ssize_t, address=Address)
    cdef int _write(self, Session session, OutgoingLink link, Delivery delivery, TransferFrame frame) except -1
    @cython.locals(link=OutgoingLink, session=Session)
    cdef void follow(self, Delivery delivery, TransferFrame frame) except *
    cdef int note_active(self, Address address) except -1
