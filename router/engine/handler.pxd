from router.amqp.reading cimport TransferFrame
from router.amqp.reading_disposition cimport DispositionFrame
from router.engine.delivery cimport Delivery
from router.engine.link cimport IncomingLink, OutgoingLink

cdef class Handler:
    cpdef void transfer_received(self, Delivery delivery, TransferFrame frame) except *
    cpdef void transfer_aborted(self, Delivery delivery) except *
    cpdef void outcome_received(self, Delivery delivery, DispositionFrame frame) except *
    cpdef void settlement_received(self, Delivery delivery, DispositionFrame frame) except *
    cpdef void credit_received(self, OutgoingLink link) except *
    cpdef void flow_received(self, IncomingLink link) except *
    cpdef Py_ssize_t available(self, OutgoingLink link) except -1
    cpdef void room_made(self, object connection, object session) except *
    cpdef void event_received(self, object connection, object event) except *
