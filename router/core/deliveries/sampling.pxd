cimport cython
from router.core.model.address cimport Address, Producer
from router.engine.delivery cimport Delivery
from router.engine.link cimport IncomingLink, Link
from router.engine.outbox cimport Turn

cdef Py_ssize_t WIDTH
cdef unsigned long long ABSENT
cdef unsigned long long ALL
cdef int ABORTED
cdef int PRESETTLED
cdef int NOBODY
cdef int RECEIVER
cdef int ROUTER
cdef unsigned long long GOLDEN
cdef unsigned long long FIRST_FACTOR
cdef unsigned long long SECOND_FACTOR
cdef double NS
cdef int HERE

@cython.final
@cython.freelist(256)
cdef class Sample:
    cdef public unsigned long long high
    cdef public unsigned long long low
    cdef public int hop
    cdef public unsigned long long threshold
    cdef public str ingress
    cdef public str origin
    cdef public double left
    cdef public bint is_leaving
    cdef public bint is_over
    cdef public double ended
    cdef public int code
    cdef public int decided_by
    cdef public str reason

    @cython.locals(copy=Sample)
    cpdef Sample copied(self)

@cython.final
cdef class Sampler:
    cdef public Turn turn
    cdef public unsigned long long threshold
    cdef public unsigned long long lost
    cdef public Py_ssize_t count
    cdef unsigned long long _high
    cdef unsigned long long _seed
    cdef unsigned long long _entered
    cdef Py_ssize_t _capacity
    cdef object _describe
    cdef unsigned long long[::1] _words
    cdef list _leaving
    cdef dict _texts
    cdef dict _links
    cdef unsigned int _batch

    @cython.locals(low=cython.ulonglong, link=IncomingLink, producer=Producer, sample=Sample)
    cpdef void begin(self, Delivery delivery) except *
    @cython.locals(mixed=cython.ulonglong)
    cdef unsigned long long _hash(self, unsigned long long number) except? 0
    @cython.locals(sample=Sample)
    cpdef void leaves(self, Delivery delivery) except *
    @cython.locals(delivery=Delivery, sample=Sample)
    cpdef void sent(self, double now) except *
    @cython.locals(sample=Sample)
    cpdef void ended(self, Delivery delivery, int code, int decided_by, str reason) except *
    @cython.locals(place=Py_ssize_t, start=Py_ssize_t)
    cpdef object take(self)
    @cython.locals(at=Py_ssize_t, step=Py_ssize_t, arrived=cython.double, address=Address)
    cdef void _record(self, Delivery delivery, Sample sample) except *
    cdef unsigned long long _number(self, Link link) except? 0
    cdef unsigned long long _text(self, str text) except? 0
