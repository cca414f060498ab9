cimport cython
from router.core.deliveries.credit cimport replenish, replenish_anonymous
from router.core.model.address cimport Address, Producer

@cython.final
cdef class CreditSharing:
    cdef object core
    cdef public list due

    cpdef int note(self, Address address, Producer producer) except -1
    cpdef int share(self) except -1
