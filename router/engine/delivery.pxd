cimport cython
from router.amqp.section_scan cimport SectionScan
from router.engine.link cimport IncomingLink, OutgoingLink

@cython.final
@cython.freelist(1024)
cdef class Delivery:
    cdef public IncomingLink incoming
    cdef public unsigned int incoming_id
    cdef public bint incoming_open
    cdef public bytes incoming_tag
    cdef public OutgoingLink outgoing
    cdef public unsigned int outgoing_id
    cdef public bint outgoing_open
    cdef public unsigned int message_format
    cdef public bint settled
    cdef public bint complete
    cdef public bint discarded
    cdef public unsigned long long size
    cdef public bint started
    cdef public bint batchable
    cdef public int outcome
    cdef public unsigned char settling
    cdef public unsigned char tag_size
    cdef public unsigned char kept_tag_size
    cdef public unsigned char priority
    cdef public unsigned char lane
    cdef public unsigned char stuck
    cdef public unsigned char transfer_flags
    cdef public SectionScan scan
    cdef public object chunks
    cdef public Py_ssize_t held_bytes
    cdef public Delivery parent
    cdef public list copies
    cdef public bint is_batch
    cdef public object address
    cdef public double deadline
    cdef public double arrived
    cdef public unsigned int ttl_at
    cdef public int open_copies
    cdef public bytes outcome_octets
    cdef public object waits_in
    cdef public long long slot
    cdef public object kept
    cdef public bytes state
    cdef public object passage
    cdef public object suspended
    cdef public bytes tag
    cdef public object sample
    cdef public unsigned long long tag_word
