cimport cython
from router.amqp cimport codes
from router.core.model.address cimport Address, Consumer, Producer
from router.core.model.backlog cimport Backlog
from router.core.model.counters cimport Counters
from router.core.deliveries.redelivery cimport Redelivery
from router.core.deliveries.outcomes cimport OutcomeCounter
from router.core.forwarding.credit_sharing cimport CreditSharing
from router.core.forwarding.settlement cimport Settler
from router.core.model.waiting_queue cimport WaitingQueue
from router.engine cimport flows
from router.engine.delivery cimport Delivery
from router.engine.blocking cimport block
from router.engine.link cimport IncomingLink, OutgoingLink
from router.engine.outbox cimport Turn
from router.engine.session cimport Session

cdef int ORDINARY
cdef int ROUTED
cdef double HELD_S
cdef Py_ssize_t MOST_SENT
cdef Py_ssize_t A_STEP
cdef long long MESSAGE_WORK

@cython.final
cdef class QueueService:
    cdef object core
    cdef Turn turn
    cdef Backlog backlog
    cdef Redelivery redelivery
    cdef OutcomeCounter outcomes
    cdef Settler settlement
    cdef CreditSharing credit
    cdef public dict drains
    cdef public int floor
    cdef public bint is_cut_short
    cdef public Consumer going_on

    @cython.locals(link=OutgoingLink, session=Session, delivery=Delivery, address=Address, waiting=WaitingQueue, has_any=bint, floor=int, sides_meant=set, count=Py_ssize_t, most=Py_ssize_t)
    cpdef void serve(self, Consumer consumer) except *
    @cython.locals(address=Address, counters=Counters, age_s=cython.double, link=OutgoingLink, sender=IncomingLink)
    cdef int count_wait(self, Consumer consumer, Delivery delivery) except -1
    @cython.locals(waiting=WaitingQueue, consumer=Consumer, is_urgent=bint, lane=cython.ulonglong)
    cpdef int wait(self, Address address, Delivery delivery) except -1
    @cython.locals(consumer=Consumer, link=OutgoingLink, session=Session, sender=IncomingLink)
    cdef int _offer_behind(self, Address address, Delivery delivery) except -1
    @cython.locals(link=OutgoingLink, level=int, takes=cython.ulonglong)
    cdef int _level(self, Consumer consumer) except? -1
    cpdef int raise_priority(self, OutgoingLink link, int level) except -1
    @cython.locals(consumer=Consumer)
    cdef int serve_next(self, OutgoingLink link) except -1
    @cython.locals(producer=Producer, parent=Delivery)
    cpdef int note_dequeued(self, Delivery delivery) except -1
    cpdef bytes annotated(self, Consumer consumer, Delivery delivery, bytes octets)
    cpdef bint note_leaving(self, Consumer consumer, Delivery delivery) except -1
    @cython.locals(address=Address)
    cdef int accept_presettled(self, Delivery delivery) except -1
