cimport cython
from router.amqp.reading_flow cimport FlowFrame
from router.amqp.writing cimport write_flow
from router.engine cimport serial
from router.engine.link cimport IncomingLink, Link, OutgoingLink
from router.engine.session cimport Session

cdef unsigned int OUTGOING_WINDOW

@cython.locals(under_way=cython.longlong, was_closed=bint, is_routed=bint, incoming=IncomingLink, outgoing=OutgoingLink)
cpdef int take_in(Session session, FlowFrame frame) except -1
@cython.locals(incoming=IncomingLink, available=Py_ssize_t)
cpdef void write(Session session, Link link) except *
