cimport cython
from router.core.address cimport Address, Consumer, Producer
from router.engine cimport serial
from router.engine.held_up cimport hold_up
from router.engine.link cimport IncomingLink, OutgoingLink
from router.engine.session cimport Session

cdef int MULTICAST
cdef int ROUTED
cdef int HERE
cdef int MESH
cdef int OWN_TREE
cdef long long UNSETTLED_LIMIT
cdef long long FOR_NOBODY

@cython.locals(total=cython.longlong, slowest=cython.longlong, credit=cython.longlong, left=cython.longlong, consumer=Consumer)
cpdef long long backing(Address address) except? -1

@cython.locals(link=OutgoingLink, session=Session, credit=cython.longlong)
cpdef long long taken_by(Consumer consumer) except -1

cpdef bint has_too_much_unsettled(IncomingLink link) except -1

@cython.locals(producers=list, producer=Producer, count=cython.longlong, room=cython.longlong, granted=cython.longlong, share=cython.longlong)
cpdef void replenish(Address address) except *

@cython.locals(slowest=cython.longlong, only_side=cython.int, left=cython.longlong, share=cython.longlong, room=cython.longlong, beyond=cython.longlong, granted=cython.longlong, given=cython.longlong, consumer=Consumer, producer=Producer)
cpdef int replenish_spread(Address address) except -1

@cython.locals(held=cython.longlong, target=cython.longlong, give=cython.longlong, link=IncomingLink, session=Session)
cpdef long long offer(Producer producer, long long share, long long room, long long left) except -1

@cython.locals(link=IncomingLink, session=Session)
cpdef int take_back(Producer producer) except -1

@cython.locals(session=Session)
cpdef int stop(IncomingLink link) except -1

@cython.locals(link=IncomingLink, session=Session, target=cython.longlong)
cpdef void replenish_anonymous(Producer producer) except *

@cython.locals(producer=Producer, consumer=Consumer, incoming=IncomingLink, outgoing=OutgoingLink, is_told=cython.bint, ahead=cython.longlong, credit=cython.longlong, held=cython.longlong, session=Session)
cpdef void pass_on(Address address) except *
