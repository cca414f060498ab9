cimport cython
from router.core.model.address cimport Consumer
from router.core.forwarding.forward cimport Forwarder
from router.core.forwarding.queue_service cimport QueueService
from router.engine.connection cimport Connection
from router.engine.blocking cimport BlockedLinks
from router.engine.link cimport OutgoingLink
from router.engine.outbox cimport Outbox
from router.engine.session cimport Session

cdef Py_ssize_t AT_ONCE
cdef Py_ssize_t A_STEP

@cython.locals(blocked=BlockedLinks)
cpdef void room_made(Forwarder forwarder, Connection connection, Session session) except *
@cython.locals(outbox=Outbox, count=Py_ssize_t, is_full=bint, top=int, link=OutgoingLink)
cpdef bint go_on(Forwarder forwarder, Connection connection, Session session, BlockedLinks blocked, Py_ssize_t most) except -1
@cython.locals(level=int, urgency=int, queues=QueueService)
cdef void _serve(Forwarder forwarder, BlockedLinks blocked, OutgoingLink link, Consumer consumer, int top) except *
@cython.locals(link=OutgoingLink, level=int, takes=cython.ulonglong)
cpdef int urgency_of(Consumer consumer) except -2
