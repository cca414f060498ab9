from router.amqp.reading cimport TransferFrame
from router.engine.delivery cimport Delivery

cpdef bint note_first_transfer(Delivery delivery, TransferFrame frame) except -1
cpdef bint check_later_transfer(Delivery delivery, TransferFrame frame) except -1
cpdef Py_ssize_t send_stated(
    Delivery delivery, const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end, bint more,
) except -1
