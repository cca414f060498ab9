cimport cython
from router.core.address cimport Address, Consumer, Producer
from router.core.credit cimport has_too_much_unsettled, offer, replenish, stop, take_back, taken_by
from router.engine.link cimport IncomingLink
from router.engine.session cimport Session

cdef int CLOSEST
cdef int MULTICAST
cdef int HERE

@cython.final
cdef class Backing:
    cdef public long long total
    cdef public dict by_side
    cpdef bint serves(self, int side) except -1
    @cython.locals(own=cython.longlong)
    cpdef Py_ssize_t room(self, int side) except? -1

@cython.final
cdef class Group:
    cdef public int side
    cdef public bint is_served
    cdef public bint has_credit
    cdef public long long room
    cdef public long long count
    cdef public long long granted

@cython.locals(nearest=cython.longlong, credit=cython.longlong, consumer=Consumer, found=Backing)
cpdef Backing backing_at(Address address, int without)

@cython.locals(found=Backing)
cpdef long long room(Address address, int side) except? -1

cpdef void finish(object forwarder, Address address) except *

@cython.locals(producers=list, producer=Producer, link=IncomingLink, side=cython.int, group=Group, nearest=Backing, farther=Backing, backing=Backing, granted=cython.longlong, total=cython.longlong, left=cython.longlong, share=cython.longlong, given=cython.longlong, session=Session, held_up=dict)
cpdef void replenish_across(Address address) except *

@cython.locals(group=Group, share=cython.longlong)
cpdef dict share_out(list groups, long long total, long long count)

cpdef long long _room_each(Group group) except? -1

cdef int _take_back(Producer producer) except -1
