cimport cython
from router.core.model.address cimport Address, Consumer, Producer
from router.core.deliveries.credit cimport TreeCredit, has_too_much_unsettled, offer, replenish_trees, room_of, take_back
from router.engine.link cimport IncomingLink
from router.engine.session cimport Session

cdef int CLOSEST
cdef int MULTICAST
cdef int HERE
cdef Py_ssize_t AT_ONCE
cdef Py_ssize_t A_STEP

@cython.final
cdef class Capacity:
    cdef public long long total
    cdef public dict by_side
    cdef public long long nearest
    @cython.locals(consumers=list, consumer=Consumer, at=Py_ssize_t, credit=cython.longlong)
    cpdef int add(self, Address address, int without, Py_ssize_t start, Py_ssize_t end) except -1
    cpdef bint serves(self, int side) except -1
    @cython.locals(own=cython.longlong)
    cpdef Py_ssize_t room(self, int side) except? -1

@cython.final
cdef class SideSenders:
    cdef public int side
    cdef public bint is_served
    cdef public bint has_credit
    cdef public long long room
    cdef public long long count
    cdef public long long granted

@cython.final
cdef class Shares:
    cdef public Address address
    cdef public Capacity nearest
    cdef public Capacity farther
    cdef public dict groups
    cdef public dict by_side
    cdef public long long granted
    cdef public long long left
    cdef public dict held_up

    @cython.locals(address=Address, producers=list, producer=Producer, at=Py_ssize_t, link=IncomingLink, side=cython.int, group=SideSenders, backing=Capacity, waiting=dict)
    cpdef int add_holdings(self, Py_ssize_t start, Py_ssize_t end) except -1
    @cython.locals(address=Address, total=cython.longlong)
    cpdef int divide(self) except -1
    @cython.locals(producers=list, producer=Producer, at=Py_ssize_t, link=IncomingLink, group=SideSenders, share=cython.longlong, room_left=cython.longlong, given=cython.longlong, session=Session)
    cpdef int offer(self, Py_ssize_t start, Py_ssize_t end) except -1

@cython.locals(found=Capacity)
cpdef Capacity capacity_of(Address address, int without)

@cython.locals(found=Capacity)
cpdef long long room(Address address, int side) except? -1

cpdef void finish(object forwarder, Address address) except *

@cython.locals(count=Py_ssize_t, shares=Shares)
cpdef void replenish_across(Address address) except *

@cython.locals(group=SideSenders, share=cython.longlong)
cpdef dict share_out(list groups, long long total, long long count)

cpdef long long _room_each(SideSenders group) except? -1
