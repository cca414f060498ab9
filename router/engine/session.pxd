cimport cython
from router.amqp cimport codes
from router.amqp.reading cimport TransferFrame
from router.amqp.reading_disposition cimport DispositionFrame
from router.amqp.reading_flow cimport FlowFrame
from router.amqp.writing cimport write_disposition, write_transfer
from router.engine cimport blocking, dispositions, flows, rare_transfers, serial, tags
from router.engine.delivery cimport Delivery
from router.engine.handler cimport Handler
from router.engine.link cimport IncomingLink, Link, OutgoingLink
from router.engine.outbox cimport Outbox
from router.engine.slots cimport Slots
from router.engine.unsettled cimport Unsettled
from router.engine.window cimport IncomingWindow

cdef int ATTACHED
cdef int UNSETTLED
cdef int INCOMING
cdef int OUTGOING

@cython.final
cdef class Session:
    cdef public object connection
    cdef public object owner
    cdef public object peer_outcomes
    cdef public Outbox outbox
    cdef public Handler handler
    cdef public unsigned int channel
    cdef public int remote_channel
    cdef public int state
    cdef public Py_ssize_t charged
    cdef public unsigned int next_outgoing_id
    cdef public long long remote_incoming_window
    cdef public unsigned int next_incoming_id
    cdef public long long remote_outgoing_window
    cdef public IncomingWindow window
    cdef public Py_ssize_t max_frame_payload
    cdef public Unsettled incoming
    cdef public Unsettled outgoing
    cdef public unsigned int next_delivery_id
    cdef public long long expected_delivery_id
    cdef public long long received_deliveries
    cdef public long long sent_deliveries
    cdef public Slots links
    cdef public IncomingLink recent_link
    cdef public unsigned int no_credit_handle
    cdef public dict local_links
    cdef public object handles
    cdef public dict unanswered
    cdef public dict errant
    cdef public dict late_handles
    cdef public unsigned int handle_max
    cdef public unsigned int remote_handle_max
    cdef public unsigned int due_first
    cdef public unsigned int due_last
    cdef public int due_code
    cdef public bint has_due
    cdef public bint flow_due
    cdef public bint window_due
    cdef public list links_due
    cdef public object blocked_links
    cdef public bint in_due

    @cython.locals(link=IncomingLink, delivery=Delivery, size=Py_ssize_t)
    cpdef void transfer_received(self, TransferFrame frame) except *
    @cython.locals(link=IncomingLink)
    cpdef IncomingLink incoming_link(self, unsigned int handle)
    @cython.locals(delivery=Delivery, number=cython.uint, is_rare=bint)
    cdef Delivery _begin_incoming(self, IncomingLink link, TransferFrame frame)
    cpdef int disposition_received(self, DispositionFrame frame) except -1
    cpdef int flow_received(self, FlowFrame frame) except -1
    cpdef bint can_send(self, OutgoingLink link) except -1
    @cython.locals(link=Link)
    cpdef bint awaits_credit(self) except -1
    @cython.locals(is_settled=bint)
    cpdef int begin_outgoing(self, OutgoingLink link, Delivery delivery) except -1
    @cython.locals(link=OutgoingLink, room=Py_ssize_t, count=Py_ssize_t, settled=bint, partial=bint)
    cpdef Py_ssize_t send(
        self, Delivery delivery, const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end, bint more,
    ) except -1
    cpdef void send_state_to_sender(
        self, Delivery delivery, bint settled, int code, const unsigned char[::1] view,
        Py_ssize_t start, Py_ssize_t count,
    ) except *
    cpdef int settle_with_code(self, Delivery delivery, int code) except -1
    cdef int _merge(self, unsigned int number, int code) except -1
    cpdef void send_state_to_receiver(
        self, Delivery delivery, bint settled, int code, const unsigned char[::1] view,
        Py_ssize_t start, Py_ssize_t count,
    ) except *
    @cython.locals(word=cython.int)
    cdef int _send_state(
        self, bint to_sender, unsigned int number, bint settled, int code,
        const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t count,
    ) except -1
    cpdef int close_incoming(self, Delivery delivery) except -1
    cpdef int close_outgoing(self, Delivery delivery) except -1
    cpdef int grant(self, IncomingLink link, unsigned int credit, bint drain) except -1
    cpdef int schedule_link_flow(self, Link link) except -1
    cpdef int use_up_credit(self, OutgoingLink link) except -1
    cpdef void held_frames_gone(self) except *
    cpdef int schedule_opening(self) except -1
    cpdef int schedule_flow(self) except -1
    cdef int _schedule(self) except -1
    @cython.locals(link=Link)
    cpdef void write_due(self) except *
    @cython.locals(settled=cython.bint, code=cython.int)
    cdef int _write_due_disposition(self) except -1
