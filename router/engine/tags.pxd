cimport cython
from router.amqp cimport octets
from router.amqp.reading cimport TransferFrame
from router.engine.delivery cimport Delivery
from router.engine.link cimport IncomingLink, OutgoingLink

cdef int SHORT_BYTES
cdef unsigned long long ALL_BITS
cdef int OWN_BYTES
cdef int OWN_FIRST

@cython.locals(size=Py_ssize_t, word=cython.ulonglong)
cpdef int take(Delivery delivery, TransferFrame frame) except -1
cpdef int copy_tag(Delivery copy, Delivery delivery) except -1
cpdef int choose(OutgoingLink link, Delivery delivery) except -1
@cython.locals(mirrored=cython.ulonglong)
cdef bint _is_new(OutgoingLink link, int size, unsigned long long word) except -1
@cython.locals(tags=set)
cdef int _claim(OutgoingLink link, Delivery delivery) except -1
cpdef int keep(Delivery delivery) except -1
cpdef int release(OutgoingLink link, Delivery delivery) except -1
