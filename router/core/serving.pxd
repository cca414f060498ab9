cimport cython
from router.core.address cimport Consumer
from router.core.dispensing cimport Dispenser
from router.engine.connection cimport Connection
from router.engine.held_up cimport HeldUp
from router.engine.link cimport OutgoingLink
from router.engine.outbox cimport Outbox
from router.engine.session cimport Session

@cython.locals(outbox=Outbox, held=HeldUp, count=cython.longlong, is_full=bint, top=int, link=OutgoingLink)
cpdef void room_made(Dispenser forwarder, Connection connection, Session session) except *
@cython.locals(level=int, urgency=int)
cdef void _serve(Dispenser forwarder, HeldUp held, OutgoingLink link, Consumer consumer, int top) except *
@cython.locals(link=OutgoingLink, level=int, takes=cython.ulonglong)
cpdef int urgency_of(Consumer consumer) except -2
