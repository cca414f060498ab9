cimport cython
from router.engine cimport serial
from router.engine.delivery cimport Delivery
from router.engine.link cimport Link

cdef long long THIN_SPAN
cdef long long THIN_SHARE
cdef long long NOTED_SPAN
cdef Py_ssize_t NOTED_AT_ONCE

@cython.final
cdef class Unsettled:
    cdef public list ring
    cdef public unsigned int mask
    cdef public unsigned int base
    cdef public long long span
    cdef public Py_ssize_t count
    cdef public dict stragglers
    cdef dict _by_link
    cdef Py_ssize_t _noted
    cdef unsigned int _noted_to
    cdef object _unnoted
    cdef Py_ssize_t _taken

    @cython.locals(ahead=cython.longlong)
    cpdef int add(self, unsigned int number, Delivery delivery) except -1
    @cython.locals(ahead=cython.longlong)
    cpdef Delivery find(self, unsigned int number)
    cpdef int replace(self, unsigned int number, Delivery delivery) except -1
    @cython.locals(ahead=cython.longlong, delivery=Delivery)
    cpdef Delivery remove(self, unsigned int number)
    @cython.locals(width=cython.longlong, step=cython.longlong)
    cpdef list stragglers_between(self, unsigned int first, unsigned int last)
    @cython.locals(start=cython.longlong, end=cython.longlong)
    cpdef Py_ssize_t count_between(self, unsigned int first, unsigned int last) except -1
    cpdef unsigned int start_from(self, unsigned int first) except? 0
    @cython.locals(width=cython.longlong)
    cpdef Py_ssize_t cost_between(self, unsigned int first, unsigned int last) except -1
    @cython.locals(ahead=cython.longlong, number=cython.uint, delivery=Delivery)
    cpdef void thin(self) except *
    @cython.locals(end=cython.uint, last=cython.Py_ssize_t, delivery=Delivery)
    cpdef list of_link(self, Link link)
    cpdef int links_changed(self) except -1
    @cython.locals(ahead=cython.longlong, delivery=Delivery)
    cdef list _walked(self, Link link)
    @cython.locals(newer=cython.longlong)
    cdef int _begin_to_note(self) except -1
    @cython.locals(
        left=cython.Py_ssize_t, ahead=cython.longlong, span=cython.longlong,
        number=cython.uint, delivery=Delivery, straggler=Delivery,
    )
    cdef bint _note_some(self, unsigned int end, Py_ssize_t last) except -1
    cdef int _note(self, dict by_link, unsigned int number, Delivery delivery) except -1
    cdef int _to_stragglers(self, unsigned int number, Delivery delivery) except -1
