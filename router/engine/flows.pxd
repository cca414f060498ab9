cimport cython
from router.amqp.reading_flow cimport FlowFrame
from router.amqp.writing cimport write_flow
from router.engine cimport serial
from router.engine.link cimport IncomingLink, Link, OutgoingLink
from router.engine.delivery cimport Delivery
from router.engine.session cimport Session
from router.engine.window cimport IncomingWindow

cdef unsigned int OUTGOING_WINDOW
cdef int MAPPED

@cython.locals(under_way=cython.longlong, was_closed=bint, is_routed=bint, incoming=IncomingLink, outgoing=OutgoingLink)
cpdef int process(Session session, FlowFrame frame) except -1
@cython.locals(session=Session)
cpdef int answer_drain(OutgoingLink link) except -1
@cython.locals(window=IncomingWindow, held=cython.longlong, link=IncomingLink, delivery=Delivery)
cpdef bint prepare_opening(Session session) except -1
@cython.locals(window=IncomingWindow)
cpdef int delay_opening(Session session) except -1
@cython.locals(incoming=IncomingLink, available=Py_ssize_t)
cpdef void write(Session session, Link link) except *
