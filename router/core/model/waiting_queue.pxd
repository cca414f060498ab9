cimport cython
from router.core.model.queues_by_side cimport QueuesBySide, lane_of, level_of, number_in, number_of
from router.core.model.size_index cimport SizeIndex
from router.engine.delivery cimport Delivery
from router.engine.link cimport IncomingLink

cdef int LEVELS
cdef int ORDINARY
cdef int HERE
cdef unsigned long long EVERY_LANE
cdef unsigned long long UNLIMITED
cdef int FEW_EXAMINED
cdef Py_ssize_t FEW_HUSKS

@cython.final
cdef class WaitingQueue:
    cdef public Py_ssize_t count
    cdef object _ordinary
    cdef list _levels
    cdef QueuesBySide _apart
    cdef public Py_ssize_t examined
    cdef public bint is_unfinished
    cdef set _husks
    cdef SizeIndex _sized
    cdef dict _elsewhere
    cdef dict _senders

    cpdef int append(self, Delivery delivery) except -1
    @cython.locals(side=int)
    cdef int _enter(self, Delivery delivery, IncomingLink link) except -1
    @cython.locals(levels=list, level=int, taken=Delivery, found=Delivery)
    cpdef Delivery popleft(self)
    @cython.locals(best=Delivery, found=Delivery, highest=int, level=int, group=cython.longlong)
    cpdef Delivery take_matching(self, unsigned long long takes, set sides, unsigned long long limit)
    @cython.locals(apart=QueuesBySide, best=Delivery, found=Delivery, oldest=Delivery, aside=list, side=cython.longlong)
    cdef Delivery _first_apart(self, long long group, set sides, unsigned long long limit)
    @cython.locals(delivery=Delivery, left=int)
    cdef Delivery _first(self, object queue, unsigned long long limit)
    @cython.locals(found=Delivery)
    cdef Delivery _first_by_size(self, object queue, unsigned long long limit)
    @cython.locals(link=IncomingLink, side=int)
    cdef object _queue_of(self, Delivery delivery)
    @cython.locals(levels=list, level=int, highest=int)
    cpdef int top(self, unsigned long long takes=*) except -2
    cpdef bint remove(self, Delivery delivery) except -1
    @cython.locals(husks=set, first=Delivery)
    cdef void _prune(self, object queue) except *
    cdef int _sweep(self) except -1
    @cython.locals(first=Delivery)
    cdef void _take(self, Delivery delivery) except *
    @cython.locals(link=IncomingLink)
    cdef int _leaves_apart(self, Delivery delivery) except -1
    cpdef int clear(self) except -1
    cpdef dict by_side(self)
    cpdef dict senders(self)
    @cython.locals(before=IncomingLink)
    cpdef bint move_to_link(self, Delivery delivery, IncomingLink link) except -1
    @cython.locals(link=IncomingLink)
    cdef int _leaves(self, Delivery delivery) except -1
    @cython.locals(senders=dict, left=Py_ssize_t)
    cdef void _count_sender(self, object link, Py_ssize_t count) except *
    @cython.locals(counts=dict, left=Py_ssize_t)
    cdef int _count_side(self, int side, Py_ssize_t count) except -1
    cdef list _all_queues(self)
    cdef list _queues(self)
    cdef object _level(self, int priority)
    @cython.locals(levels=list, level=int)
    cdef void _forget_levels(self) except *
