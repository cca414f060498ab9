cimport cython
from router.amqp cimport codes, octets
from router.amqp.reading cimport Cursor
from router.amqp.reading cimport TransferFrame
from router.amqp.reading_disposition cimport DispositionFrame
from router.amqp.reading_flow cimport FlowFrame
from router.engine.handler cimport Handler
from router.engine.link cimport IncomingLink
from router.engine.outbox cimport Outbox, Turn
from router.engine.session cimport Session
from router.engine.slots cimport Slots
from router.engine.window cimport share_of

cdef int HEADER
cdef int SASL
cdef int AMQP
cdef int OVER
cdef int MAPPED
cdef int BEGIN
cdef Py_ssize_t FRAME_HEADER_BYTES
cdef long long TABLED_WORK
cdef Py_ssize_t OCTETS_OF_WORK

@cython.final
cdef class Connection:
    cdef public object settings
    cdef public Handler handler
    cdef public Turn turn
    cdef public Outbox outbox
    cdef public object account
    cdef public str name
    cdef public long long number
    cdef public str user
    cdef public str mechanism
    cdef public object groups
    cdef public bint challenged
    cdef public str token_error
    cdef public bint is_encrypted
    cdef public str external_user
    cdef public str requested_host
    cdef public bint is_client
    cdef public object owner
    cdef public object access
    cdef public int state
    cdef public int phase
    cdef public bint paused
    cdef public bint is_behind
    cdef public object unfinished
    cdef public long long turn_work
    cdef public long long turn_end
    cdef public Py_ssize_t held_bytes
    cdef public bint held_back
    cdef public bint finished
    cdef public bytes kept
    cdef public Cursor cursor
    cdef public TransferFrame transfer
    cdef public DispositionFrame disposition
    cdef public FlowFrame flow
    cdef public Py_ssize_t frame_end
    cdef public Py_ssize_t max_frame_size
    cdef public Py_ssize_t sasl_frame_bytes
    cdef public Py_ssize_t remote_max_frame_size
    cdef public object remote_open
    cdef public object local_open
    cdef public double remote_idle_s
    cdef public int channel_max
    cdef public Slots sessions
    cdef public dict local_sessions
    cdef public object channels
    cdef public Session recent_session
    cdef public list sessions_due
    cdef public dict delayed_windows
    cdef public Session failing
    cdef public double started_at
    cdef public double closed_at
    cdef public double last_received
    cdef public double last_sent
    cdef public long long frames_received
    cdef public unsigned long long last_code
    cdef public Py_ssize_t tabled_bytes
    cdef public long long received_bytes
    cdef public long long sent_bytes
    cdef public long long frames_before
    cdef public long long sent_before
    cdef public long long past_received
    cdef public long long past_sent

    cpdef bint has_to_wait(self) except -1
    @cython.locals(limit=Py_ssize_t)
    cpdef bint unsent_beyond(self, Py_ssize_t part) except -1
    @cython.locals(at=Py_ssize_t, following=Py_ssize_t)
    cpdef void receive(self, const unsigned char[::1] view, Py_ssize_t end) except *
    @cython.locals(session=Session, link=IncomingLink, came_alone=bint)
    cpdef bint expects_more(self) except -1
    cpdef bint took_long(self) except -1
    @cython.locals(size=Py_ssize_t, doff=Py_ssize_t, limit=Py_ssize_t, phase=int)
    cdef Py_ssize_t _read(self, const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end) except -1
    @cython.locals(cursor=Cursor, session=Session, code=cython.ulonglong)
    cdef void _read_frame(self, unsigned int channel, Py_ssize_t at, Py_ssize_t end) except *
    @cython.locals(session=Session)
    cdef Session _mapped_session(self, unsigned int channel)
    @cython.locals(session=Session)
    cpdef void write_due(self) except *
    cpdef int deduct_work(self, long long count) except -1
    cpdef bint try_deduct_work(self, long long count) except -1
    cpdef Py_ssize_t window_share(self, bint holds) except -1
    cpdef void sent(self, Py_ssize_t count) except *
