cimport cython
from router.engine.link cimport Link, OutgoingLink
from router.engine.session cimport Session

cdef int LEVELS
cdef int PATIENCE

@cython.final
cdef class BlockedLinks:
    cdef public Py_ssize_t count
    cdef public int top
    cdef public bint is_later
    cdef list _levels
    cdef int _passed_over
    cdef int _let_in

    cpdef void add(self, Link link, int level) except *
    @cython.locals(level=int)
    cpdef int remove(self, Link link) except -1
    @cython.locals(level=int, link=Link)
    cpdef Link take(self)
    cpdef int note_full(self) except -1
    @cython.locals(level=int)
    cdef int _below(self) except -1

@cython.locals(blocked=BlockedLinks)
cpdef void block(Session session, OutgoingLink link) except *
