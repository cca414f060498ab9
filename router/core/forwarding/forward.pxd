cimport cython
from router.amqp cimport codes
from router.amqp.reading cimport TransferFrame
from router.amqp.reading_disposition cimport DispositionFrame
from router.core.model.address cimport Address, Consumer, Producer
from router.core.model.backlog cimport Backlog
from router.core.model.counters cimport Counters
from router.core.deliveries.outcomes cimport OutcomeCounter
from router.core.forwarding.intake cimport Intake
from router.core.deliveries.redelivery cimport Redelivery
from router.core.forwarding.credit_sharing cimport CreditSharing
from router.core.forwarding.distribution cimport Distributor
from router.core.forwarding.queue_service cimport QueueService
from router.core.forwarding.relaying cimport Relay
from router.core.forwarding.settlement cimport Settler
from router.engine.delivery cimport Delivery
from router.engine.handler cimport Handler
from router.engine.link cimport IncomingLink, OutgoingLink
from router.engine.outbox cimport Turn
from router.engine.session cimport Session

cdef int MULTICAST
cdef unsigned int BATCH_FORMAT
cdef Py_ssize_t MANY_CONSUMERS
cdef Py_ssize_t COPY_WORK

cdef class Forwarder(Handler):
    cdef public Turn turn
    cdef public Redelivery redelivery
    cdef public Backlog backlog
    cdef public OutcomeCounter outcomes
    cdef public CreditSharing credit
    cdef public Settler settlement
    cdef public QueueService queues
    cdef public Relay relay
    cdef public Distributor distribution
    cdef public object table
    cdef public object link_names
    cdef public object suspended
    cdef public object sources
    cdef public object link_routes
    cdef public object routed
    cdef public object reach
    cdef public object network
    cdef public list network_due
    cdef public object exchanges
    cdef public dict sizes_due
    cdef public dict dying_nodes
    cdef public object node_accounts
    cdef public list idle_sessions
    cdef public object on_control
    cdef public object on_open
    cdef public object may_redirect
    cdef public bint detaches_unroutable
    cdef public object reply_nodes
    cdef public object observer
    cdef public Intake intake
    cdef public object batches

    @cython.locals(address=Address, sound=TransferFrame)
    cpdef void transfer_received(self, Delivery delivery, TransferFrame frame) except *
    @cython.locals(link=IncomingLink, producer=Producer, address=Address, consumer=Consumer, sound=TransferFrame)
    cdef void _begin(self, Delivery delivery, TransferFrame frame) except *
    @cython.locals(link=IncomingLink)
    cdef Address _address_of_message(self, Delivery delivery, Producer producer, TransferFrame frame)
    cpdef void outcome_received(self, Delivery delivery, DispositionFrame frame) except *
    cpdef void settlement_received(self, Delivery delivery, DispositionFrame frame) except *
    @cython.locals(consumer=Consumer, session=Session)
    cpdef void credit_received(self, OutgoingLink link) except *
    @cython.locals(address=Address, counters=Counters, age_s=cython.double, count=cython.ulonglong)
    cpdef int sent(self, double now) except -1
    cpdef int finish_turn(self) except -1
