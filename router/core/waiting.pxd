cimport cython
from router.core.by_size cimport BySize
from router.engine.delivery cimport Delivery
from router.engine.link cimport IncomingLink

cdef int LEVELS
cdef int ORDINARY
cdef int HERE
cdef unsigned long long EVERY_LANE
cdef unsigned long long UNLIMITED
cdef int MOST_EMPTY
cdef int FEW_LOOKS
cdef Py_ssize_t FEW_HUSKS
cdef int LEVEL_BITS
cdef int LANE_BITS

@cython.final
cdef class WaitingQueue:
    cdef public Py_ssize_t count
    cdef object _ordinary
    cdef list _levels
    cdef dict _apart
    cdef Py_ssize_t _apart_count
    cdef public Py_ssize_t looked_at
    cdef public bint is_unfinished
    cdef set _husks
    cdef BySize _sized
    cdef dict _elsewhere
    cdef dict _senders

    cpdef int append(self, Delivery delivery) except -1
    @cython.locals(side=int)
    cdef int _enter(self, Delivery delivery, IncomingLink link) except -1
    @cython.locals(levels=list, level=int, taken=Delivery, found=Delivery)
    cpdef Delivery popleft(self)
    @cython.locals(best=Delivery, found=Delivery, highest=int, level=int, lane=int, number=cython.longlong, is_apart=bint)
    cpdef Delivery take_for(self, unsigned long long takes, set sides, unsigned long long limit)
    @cython.locals(delivery=Delivery, left=int)
    cdef Delivery _first(self, object queue, unsigned long long limit)
    @cython.locals(found=Delivery)
    cdef Delivery _first_by_size(self, object queue, unsigned long long limit)
    @cython.locals(link=IncomingLink, side=int)
    cdef object _queue_of(self, Delivery delivery)
    @cython.locals(levels=list, level=int, highest=int, lane=int, number=cython.longlong)
    cpdef int top(self, unsigned long long takes=*) except -2
    @cython.locals(link=IncomingLink)
    cpdef bint remove(self, Delivery delivery) except -1
    @cython.locals(husks=set, first=Delivery)
    cdef void _prune(self, object queue) except *
    cdef int _sweep(self) except -1
    @cython.locals(first=Delivery)
    cdef int _take_from(self, object queue, Delivery delivery, bint is_apart) except -1
    cpdef int clear(self) except -1
    cpdef dict by_side(self)
    cpdef dict senders(self)
    @cython.locals(before=IncomingLink)
    cpdef bint moves(self, Delivery delivery, IncomingLink link) except -1
    @cython.locals(link=IncomingLink)
    cdef int _leaves(self, Delivery delivery) except -1
    @cython.locals(senders=dict, left=Py_ssize_t)
    cdef void _count_sender(self, object link, Py_ssize_t count) except *
    @cython.locals(counts=dict, left=Py_ssize_t)
    cdef int _count_side(self, int side, Py_ssize_t count) except -1
    cdef list _queues(self)
    cdef object _level(self, int priority)
    @cython.locals(apart=dict)
    cdef object _queue_apart(self, long long number)
    @cython.locals(levels=list, level=int)
    cdef void _forget_levels(self) except *

cdef long long _number(Delivery delivery, long long side) except? -1
