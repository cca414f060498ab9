cimport cython
from router.amqp.reading cimport TransferFrame
from router.amqp.section_scan cimport SectionScan, is_plain
from router.engine.delivery cimport Delivery

@cython.final
cdef class Intake:
    cdef public SectionScan spare
    cdef public str problem

    @cython.locals(scan=SectionScan)
    cpdef TransferFrame begin(self, Delivery delivery, TransferFrame frame)
    @cython.locals(scan=SectionScan)
    cpdef TransferFrame follow(self, Delivery delivery, TransferFrame frame)
