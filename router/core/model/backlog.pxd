cimport cython
from router.core.model.address cimport Address
from router.core.model.deadlines cimport Deadlines
from router.engine.delivery cimport Delivery
from router.engine.blocking cimport block
from router.engine.outbox cimport Turn
from router.engine.session cimport Session

cdef int MAPPED
cdef int ROUTED
cdef int SMALL_ULONG
cdef int HEADER

@cython.final
cdef class Backlog:
    cdef public Turn turn
    cdef public Py_ssize_t held_bytes
    cdef public Py_ssize_t limit_bytes
    cdef public dict batches
    cdef public Deadlines deadlines
    cdef public double wall_ahead_s

    @cython.locals(count=Py_ssize_t, session=Session, deadline=double, expiry=double)
    cpdef int hold(self, Delivery delivery, const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end) except -1
    cpdef int remove_ttl(self, Delivery delivery) except -1
    cpdef int write_remaining_ttl(self, Delivery delivery) except -1
    @cython.locals(count=Py_ssize_t)
    cpdef int replace_first(self, Delivery delivery, bytes octets) except -1
    @cython.locals(session=Session)
    cdef int _release(self, Delivery delivery, Py_ssize_t frames, Py_ssize_t count) except -1
    cpdef int drop(self, Delivery delivery) except -1
    @cython.locals(count=Py_ssize_t, sent=Py_ssize_t, address=Address)
    cpdef bint send(self, Session session, Delivery delivery) except -1

@cython.locals(form=int, descriptor=int)
cdef bint begins_without_header(const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end) except -1
