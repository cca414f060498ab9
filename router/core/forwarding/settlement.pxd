cimport cython
from router.amqp cimport codes
from router.amqp.reading_disposition cimport DispositionFrame
from router.core.model.address cimport Address, Producer
from router.core.forwarding.credit_sharing cimport CreditSharing
from router.core.deliveries.outcomes cimport OutcomeCounter
from router.core.deliveries.redelivery cimport Redelivery
from router.engine.delivery cimport Delivery
from router.engine.link cimport IncomingLink, OutgoingLink
from router.engine.outbox cimport Turn
from router.engine.session cimport Session

cdef int TOLD
cdef int ROUTED
cdef bytes NULL
cdef Py_ssize_t COPIES_AT_ONCE

@cython.final
cdef class Settler:
    cdef object core
    cdef CreditSharing credit
    cdef public Redelivery redelivery
    cdef public Turn turn
    cdef public OutcomeCounter outcomes

    @cython.locals(outgoing=OutgoingLink, count=Py_ssize_t)
    cpdef void outcome_received(self, Delivery delivery, DispositionFrame frame) except *
    @cython.locals(link=IncomingLink, session=Session)
    cdef int _tell_settled(self, Delivery delivery, DispositionFrame frame, Py_ssize_t count) except -1
    @cython.locals(session=Session, is_outcome=bint)
    cdef int _told_unsettled(self, Delivery delivery, DispositionFrame frame, Py_ssize_t count) except -1
    @cython.locals(code=int, link=IncomingLink, session=Session)
    cdef void _pass_on(self, Delivery delivery, DispositionFrame frame, Py_ssize_t count) except *
    @cython.locals(session=Session)
    cdef bint _is_old_news(self, Delivery delivery, DispositionFrame frame) except -1
    @cython.locals(session=Session, code=int, is_outcome=bint, was_told=bint)
    cdef void _told_second(self, Delivery delivery, DispositionFrame frame, Py_ssize_t count) except *
    cdef int _copy_settled(self, Delivery copy, DispositionFrame frame, Py_ssize_t count) except -1
    @cython.locals(link=OutgoingLink, session=Session)
    cdef int _settle_receiver(self, Delivery delivery, DispositionFrame frame, Py_ssize_t count) except -1
    @cython.locals(producer=Producer)
    cpdef int note_sender(self, IncomingLink link) except -1
    @cython.locals(link=IncomingLink, session=Session)
    cpdef void settle(self, Delivery delivery, int code, bytes state) except *
    cpdef int settle_lost(self, Delivery delivery) except -1
    @cython.locals(session=Session)
    cpdef int sender_lost(self, Delivery delivery) except -1
    @cython.locals(parent=Delivery)
    cpdef int merge(self, Delivery copy, int code, bytes state) except -1
    cpdef int settle_merged(self, Delivery parent) except -1
    @cython.locals(copies=list, code=int, count=Py_ssize_t)
    cpdef void settlement_received(self, Delivery delivery, DispositionFrame frame) except *
    @cython.locals(copy=Delivery, session=Session)
    cpdef int pass_to_receivers(self, list copies, DispositionFrame frame, int code, Py_ssize_t count) except -1
