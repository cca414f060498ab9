cimport cython
from router.amqp cimport codes
from router.amqp.reading cimport DispositionFrame, TransferFrame
from router.core.address cimport Address, Consumer, Producer
from router.core.backlog cimport Backlog
from router.core.credit cimport replenish, replenish_anonymous
from router.engine.delivery cimport Delivery
from router.engine.handler cimport Handler
from router.engine.link cimport IncomingLink, OutgoingLink
from router.engine.outbox cimport Turn
from router.engine.session cimport Session

cdef int MULTICAST
cdef int CLOSEST
cdef bytes EMPTY

cdef class Forwarder(Handler):
    cdef public object table
    cdef public Turn turn
    cdef public object observer
    cdef public list credit_due
    cdef public Backlog backlog

    @cython.locals(address=Address, copy=Delivery)
    cpdef void transfer_received(self, Delivery delivery, TransferFrame frame) except *
    @cython.locals(link=IncomingLink, producer=Producer, address=Address, consumer=Consumer)
    cdef void _begin(self, Delivery delivery, TransferFrame frame) except *
    @cython.locals(link=OutgoingLink, session=Session)
    cdef void _start(self, Consumer consumer, Delivery delivery, TransferFrame frame) except *
    @cython.locals(start=Py_ssize_t, address=Address)
    cdef void _write(self, Session session, OutgoingLink link, Delivery delivery, TransferFrame frame) except *
    @cython.locals(link=OutgoingLink, session=Session)
    cdef void _follow(self, Delivery delivery, TransferFrame frame) except *
    @cython.locals(consumers=list, count=Py_ssize_t, at=Py_ssize_t, fewest=Py_ssize_t, best=Consumer, consumer=Consumer, link=OutgoingLink, session=Session)
    cdef Consumer _choose(self, Address address)
    @cython.locals(consumer=Consumer, link=OutgoingLink, session=Session, has_room=bint, copy=Delivery)
    cdef void _fan_out(self, Address address, Delivery delivery, TransferFrame frame) except *
    @cython.locals(link=IncomingLink)
    cdef Address _address_of_message(self, Delivery delivery, Producer producer, TransferFrame frame)
    cdef int _refuse(self, Delivery delivery, bytes verdict) except -1
    cpdef int no_destination(self, Address address, Delivery delivery) except -1
    @cython.locals(link=OutgoingLink, session=Session, delivery=Delivery)
    cpdef void serve(self, Consumer consumer) except *
    @cython.locals(consumer=Consumer)
    cdef int _serve_next(self, OutgoingLink link) except -1
    @cython.locals(producer=Producer)
    cpdef int count_out(self, Delivery delivery) except -1
    @cython.locals(address=Address)
    cdef void _taken(self, Delivery delivery) except *
    @cython.locals(address=Address, link=IncomingLink, session=Session, count=Py_ssize_t)
    cpdef void outcome_received(self, Delivery delivery, DispositionFrame frame) except *
    @cython.locals(address=Address, session=Session)
    cdef void _copy_outcome_received(self, Delivery copy, DispositionFrame frame, Py_ssize_t count) except *
    @cython.locals(producer=Producer)
    cdef int _note_sender(self, IncomingLink link) except -1
    @cython.locals(link=IncomingLink, session=Session)
    cpdef void settle(self, Delivery delivery, int code, bytes state) except *
    @cython.locals(parent=Delivery)
    cpdef void merge(self, Delivery copy, int code, bytes state) except *
    @cython.locals(copy=Delivery, session=Session, count=Py_ssize_t)
    cpdef void settlement_received(self, Delivery delivery, DispositionFrame frame) except *
    @cython.locals(consumer=Consumer, session=Session)
    cpdef void credit_received(self, OutgoingLink link) except *
    cpdef int note_credit(self, Address address, Producer producer) except -1
    cpdef void finish_turn(self) except *
