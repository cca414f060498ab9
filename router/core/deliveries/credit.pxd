cimport cython
from router.core.model.address cimport Address, Consumer, Producer
from router.engine cimport serial
from router.engine.blocking cimport block
from router.engine.link cimport IncomingLink, OutgoingLink
from router.engine.session cimport Session

cdef int MULTICAST
cdef int ROUTED
cdef int HERE
cdef int MESH
cdef int OWN_TREE
cdef long long UNSETTLED_LIMIT
cdef long long CREDIT_WITHOUT_RECEIVER
cdef Py_ssize_t AT_ONCE
cdef Py_ssize_t A_STEP
cdef int RECEIVERS
cdef int HOLDINGS
cdef int OFFERS

@cython.final
cdef class Sharing:
    cdef public Address address
    cdef public bint is_again_due
    cdef public int phase
    cdef public Py_ssize_t at
    cdef public long long total
    cdef public long long slowest
    cdef public long long granted
    cdef public long long room
    cdef public long long share

    @cython.locals(address=Address)
    cpdef bint step(self) except -1
    @cython.locals(address=Address, consumers=list, consumer=Consumer, at=Py_ssize_t, end=Py_ssize_t, credit=cython.longlong, left=cython.longlong)
    cdef int _add_receivers(self) except -1
    @cython.locals(address=Address, producers=list, producer=Producer, at=Py_ssize_t, end=Py_ssize_t)
    cdef int _add_holdings(self) except -1
    @cython.locals(address=Address, producers=list, producer=Producer, at=Py_ssize_t, end=Py_ssize_t, is_served=cython.bint, left=cython.longlong)
    cdef bint _offer(self) except -1

@cython.locals(total=cython.longlong, slowest=cython.longlong, credit=cython.longlong, left=cython.longlong, consumer=Consumer)
cpdef long long receiver_room(Address address) except? -1

@cython.locals(link=OutgoingLink, session=Session, credit=cython.longlong)
cpdef long long room_of(Consumer consumer) except -1

cpdef bint has_too_much_unsettled(IncomingLink link) except -1

@cython.locals(count=Py_ssize_t)
cpdef void replenish(Address address) except *

@cython.locals(producers=list, producer=Producer, count=cython.longlong, room=cython.longlong, granted=cython.longlong, share=cython.longlong)
cpdef void replenish_at_once(Address address) except *

@cython.final
cdef class TreeCredit:
    cdef public Address address
    cdef public long long slowest
    cdef public int only_side
    cdef public long long granted
    cdef public dict trees
    cdef public dict held
    cdef public dict counts

    @cython.locals(consumers=list, trees=dict, at=Py_ssize_t, consumer=Consumer, left=cython.longlong)
    cpdef int add_receivers(self, Py_ssize_t start, Py_ssize_t end) except -1
    @cython.locals(producers=list, at=Py_ssize_t, producer=Producer, credit=cython.longlong)
    cpdef int add_holdings(self, Py_ssize_t start, Py_ssize_t end) except -1
    @cython.locals(producers=list, at=Py_ssize_t, producer=Producer, room=cython.longlong, share=cython.longlong, left=cython.longlong, beyond=cython.longlong, given=cython.longlong)
    cpdef int offer(self, Py_ssize_t start, Py_ssize_t end) except -1

@cython.locals(spread=TreeCredit, count=Py_ssize_t)
cpdef void replenish_trees(Address address) except *

@cython.locals(held=cython.longlong, target=cython.longlong, give=cython.longlong, link=IncomingLink, session=Session)
cpdef long long offer(Producer producer, long long share, long long room, long long left) except -1

@cython.locals(link=IncomingLink, session=Session)
cpdef int drain_sender(Producer producer) except -1

cpdef int take_back(Producer producer) except -1

@cython.locals(session=Session)
cpdef int revoke(IncomingLink link) except -1

@cython.locals(link=IncomingLink, session=Session, target=cython.longlong)
cpdef void replenish_anonymous(Producer producer) except *

@cython.locals(producer=Producer, consumer=Consumer, incoming=IncomingLink, outgoing=OutgoingLink, is_told=cython.bint, ahead=cython.longlong, credit=cython.longlong, held=cython.longlong, session=Session)
cpdef void copy_credit(Address address) except *
