/* The benchmark's load generator: N senders and N receivers of AMQP 1.0 in one thread.
 *
 * It speaks the protocol by hand, so that its own work stays small beside that of the router
 * under test: frames are templates, many transfers leave in one send(), and a receiver answers
 * one read with one disposition range and at most one flow. It keeps to the peer's credit and
 * window exactly and ends with an error when the peer does not keep to its own.
 *
 * In direct mode (--direct PORT) the receivers listen instead, and the senders reach them through
 * a byte relay, which gives the floor to compare routers with. The result is one line of JSON.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "process.h"
#include "wire.h"

enum {
    TRANSFER_HEAD_BYTES = 29,
    SEQUENCE_BYTES = 8,
    MIN_BODY_BYTES = 16,
    MAX_FRAME_BYTES = 65536,
    READ_BYTES = 256 * 1024,
    FILL_BYTES = 256 * 1024,
    INCOMING_WINDOW = 1 << 20,
    MAX_HANDSHAKES = 32, /* below any router's listen backlog */
    MAX_EVENTS = 64,
};

static struct {
    const char *host, *address;
    int port, direct_port, pid;
    uint32_t pairs, fan_out, credit, inflight, idle;
    uint64_t count;
    size_t body_bytes;
    double deadline_s, hold_s;
    bool presettled, lossy, no_sasl, verify, send_role, receive_role;
} options = {
    .host = "127.0.0.1", .address = "bench", .pairs = 1, .fan_out = 1, .credit = 1000,
    .count = 100000, .body_bytes = 100, .deadline_s = 60, .send_role = true, .receive_role = true,
};

struct connection {
    int fd;
    uint32_t index;
    bool sender, acceptor, need_header, header_sent, attached, armed, closing, quiet;
    struct output out;
    uint8_t *in;
    size_t in_begin, in_end, in_size;
    uint32_t peer_max_frame, peer_idle_ms;

    /* sender: session window, link credit, and what has been sent and settled */
    uint32_t next_outgoing_id, window, delivery_count, credit;
    uint64_t sent, settled;
    size_t message_at;
    bool credited, done;

    /* receiver: what it has granted, and what it has yet to answer */
    uint32_t next_incoming_id, granted, in_window, first_id, last_id, current_id;
    uint64_t received;
    size_t body_left;
    int64_t stamp_ns;
    bool in_delivery, unsettled, to_settle;
};

static struct connection *connections;
static uint32_t connection_count, opened, attached, credited, done;
static uint64_t per_sender, per_receiver, sample_every, lost;
static int epoll_fd, listen_fd = -1;
static bool started;
static int64_t started_ns, received_ns, finished_ns, own_cpu_ns, router_cpu_ns;

static uint8_t *message; /* one encoded message: a data section */
static size_t message_bytes, body_at;

struct samples {
    int64_t *ns;
    size_t count, size;
};
static struct samples received_after, settled_after;
static int64_t **sent_at_ns; /* per sender, per sampled message */

void die(enum exit_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(code);
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sample(struct samples *s, int64_t since_ns)
{
    if (s->count < s->size)
        s->ns[s->count++] = now_ns(CLOCK_MONOTONIC) - since_ns;
}

/* ---- the run as a whole ---- */

static void start_if_ready(void);

static void start(void)
{
    started = true;
    if (options.pid)
        router_cpu_ns = process_cpu_ns(options.pid);
    own_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    started_ns = now_ns(CLOCK_MONOTONIC);
}

static void connection_done(void)
{
    if (++done != connection_count)
        return;
    finished_ns = now_ns(CLOCK_MONOTONIC);
    own_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - own_cpu_ns;
    if (options.pid)
        router_cpu_ns = process_cpu_ns(options.pid) - router_cpu_ns;
}

/* ---- what is said at the start of a connection ---- */

static void send_header(struct connection *c, uint8_t protocol)
{
    put_raw(&c->out, (uint8_t[]){'A', 'M', 'Q', 'P', protocol, 1, 0, 0}, 8);
}

static void send_open(struct connection *c)
{
    char name[64];
    snprintf(name, sizeof name, "bench-%d-%s-%u", getpid(), c->sender ? "s" : "r", c->index);
    size_t start = frame_begin(&c->out, 0, OPEN);
    put_text(&c->out, 0xa1, name);
    put_null(&c->out);
    put_uint(&c->out, MAX_FRAME_BYTES);
    put_ushort(&c->out, 255);
    frame_end(&c->out, start, 4);
}

static void send_begin(struct connection *c)
{
    size_t start = frame_begin(&c->out, 0, BEGIN);
    if (c->acceptor)
        put_ushort(&c->out, 0);
    else
        put_null(&c->out);
    put_uint(&c->out, 0);
    put_uint(&c->out, INCOMING_WINDOW);
    put_uint(&c->out, INCOMING_WINDOW);
    put_uint(&c->out, 255);
    frame_end(&c->out, start, 5);
}

static void send_attach(struct connection *c)
{
    char name[64], address[256];
    snprintf(name, sizeof name, "link-%d-%s-%u", getpid(), c->sender ? "s" : "r", c->index);
    if (options.fan_out > 1)
        snprintf(address, sizeof address, "%s", options.address);
    else
        snprintf(address, sizeof address, "%s/%u", options.address, c->index);
    if (strlen(address) > 200)
        die(EXIT_USAGE, "address too long");
    size_t start = frame_begin(&c->out, 0, ATTACH);
    put_text(&c->out, 0xa1, name);
    put_uint(&c->out, 0);
    put_bool(&c->out, !c->sender);
    put_ubyte(&c->out, options.presettled && c->sender ? 1 : 2);
    put_ubyte(&c->out, 0);
    put_terminus(&c->out, 0x28, address);
    put_terminus(&c->out, 0x29, address);
    put_null(&c->out);
    put_null(&c->out);
    if (c->sender)
        put_uint(&c->out, 0);
    else
        put_null(&c->out);
    frame_end(&c->out, start, 10);
}

static void send_opening(struct connection *c)
{
    send_header(c, 0);
    send_open(c);
    send_begin(c);
    send_attach(c);
}

/* ---- flows and dispositions ---- */

static void send_flow(struct connection *c)
{
    size_t start = frame_begin(&c->out, 0, FLOW);
    put_uint(&c->out, c->next_incoming_id);
    put_uint(&c->out, INCOMING_WINDOW);
    put_uint(&c->out, c->next_outgoing_id);
    put_uint(&c->out, INCOMING_WINDOW);
    put_uint(&c->out, 0);
    put_uint(&c->out, c->delivery_count);
    put_uint(&c->out, c->sender ? c->credit : c->granted);
    frame_end(&c->out, start, 7);
    c->in_window = INCOMING_WINDOW;
}

static void send_disposition(struct connection *c, bool role, uint32_t first, uint32_t last)
{
    size_t start = frame_begin(&c->out, 0, DISPOSITION);
    put_bool(&c->out, role);
    put_uint(&c->out, first);
    put_uint(&c->out, last);
    put_bool(&c->out, true);
    put_raw(&c->out, (uint8_t[]){0x00, 0x53, ACCEPTED, 0x45}, 4);
    frame_end(&c->out, start, 5);
}

static void settle_pending(struct connection *c)
{
    if (c->to_settle)
        send_disposition(c, true, c->first_id, c->last_id);
    c->to_settle = false;
}

/* Once for each read: settle what has come, and top the credit up when half of it is used. */
static void answer(struct connection *c)
{
    settle_pending(c);
    if (!c->attached || c->closing)
        return;
    if (c->granted <= options.credit / 2) {
        c->granted = options.credit;
        send_flow(c);
    } else if (c->in_window <= INCOMING_WINDOW / 2) {
        send_flow(c);
    }
}

/* ---- sending ---- */

static bool may_begin_message(const struct connection *c)
{
    return c->sent < per_sender && c->credit > 0
           && (options.inflight == 0 || c->sent - c->settled < options.inflight);
}

static bool may_send(const struct connection *c)
{
    return started && c->window > 0 && (c->message_at > 0 || may_begin_message(c));
}

static void put_transfer(struct connection *c)
{
    uint32_t frame_limit = c->peer_max_frame < MAX_FRAME_BYTES ? c->peer_max_frame : MAX_FRAME_BYTES;
    size_t left = message_bytes - c->message_at, chunk = frame_limit - TRANSFER_HEAD_BYTES;
    bool more = left > chunk;
    if (!more)
        chunk = left;
    uint8_t head[TRANSFER_HEAD_BYTES] = {
        0, 0, 0, 0, 2, 0, 0, 0, 0x00, 0x53, TRANSFER, 0xc0, 16, 6, 0x43, 0x70, 0, 0, 0, 0,
        0xa0, 4, 0, 0, 0, 0, 0x43, options.presettled ? 0x41 : 0x42, more ? 0x41 : 0x42,
    };
    store_u32(head, (uint32_t)(TRANSFER_HEAD_BYTES + chunk));
    store_u32(head + 16, (uint32_t)c->sent);
    store_u32(head + 22, (uint32_t)c->sent);
    uint8_t *p = room(&c->out, TRANSFER_HEAD_BYTES + chunk);
    memcpy(p, head, sizeof head);
    memcpy(p + TRANSFER_HEAD_BYTES, message + c->message_at, chunk);
    c->window--;
    c->next_outgoing_id++;
    if (c->message_at == 0) {
        uint8_t *body = p + TRANSFER_HEAD_BYTES + body_at;
        store_u64(body, c->sent);
        if (c->sent % sample_every == 0) {
            int64_t now = now_ns(CLOCK_MONOTONIC);
            store_u64(body + SEQUENCE_BYTES, (uint64_t)now);
            sent_at_ns[c->index][c->sent / sample_every] = now;
        }
        c->credit--;
        c->delivery_count++;
    }
    c->message_at += chunk;
    if (!more) {
        c->message_at = 0;
        c->sent++;
    }
}

static void fill(struct connection *c)
{
    while (c->out.end - c->out.begin < FILL_BYTES && may_send(c))
        put_transfer(c);
}

static void check_sender_done(struct connection *c)
{
    bool finished = c->sent == per_sender && c->out.begin == c->out.end
                    && (options.presettled || c->settled == per_sender);
    if (finished && !c->done) {
        c->done = true;
        connection_done();
    }
}

static void arm(struct connection *c, bool for_writing)
{
    if (c->armed == for_writing)
        return;
    struct epoll_event event = {
        .events = EPOLLIN | (for_writing ? EPOLLOUT : 0u), .data.ptr = c,
    };
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event) < 0)
        die(EXIT_USAGE, "epoll_ctl: %s", strerror(errno));
    c->armed = for_writing;
}

/* Send what is there and as many messages as credit, window and one buffer allow. */
static void flush(struct connection *c)
{
    struct output *o = &c->out;
    if (c->sender)
        fill(c);
    if (o->begin < o->end) {
        ssize_t sent = send(c->fd, o->data + o->begin, o->end - o->begin, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            if (c->closing)
                sent = (ssize_t)(o->end - o->begin);
            else
                die(EXIT_PROTOCOL, "send: %s", strerror(errno));
        }
        if (sent > 0) {
            o->begin += (size_t)sent;
            c->quiet = false;
        }
        if (o->begin > 0 && o->end > o->size / 2) {
            memmove(o->data, o->data + o->begin, o->end - o->begin);
            o->end -= o->begin;
            o->begin = 0;
        }
    }
    if (c->sender && started)
        check_sender_done(c);
    arm(c, o->begin < o->end || (c->sender && may_send(c)));
}

static void start_if_ready(void)
{
    uint32_t senders = options.send_role && !options.idle ? options.pairs : 0;
    if (started || credited < senders || attached < connection_count)
        return;
    start();
    for (uint32_t i = 0; i < connection_count; i++)
        if (connections[i].sender)
            flush(&connections[i]);
}

/* ---- receiving messages ---- */

static void begin_delivery(struct connection *c, struct cursor *in)
{
    if (c->granted == 0)
        die(EXIT_PROTOCOL, "a delivery came without link credit");
    c->granted--;
    c->delivery_count++;
    c->in_delivery = true;
    c->unsettled = true;
    uint64_t section;
    while ((section = take_descriptor(in)) != DATA) {
        if (section < HEADER || section > APPLICATION_PROPERTIES)
            die(EXIT_PROTOCOL, "section 0x%llx where data belongs", (unsigned long long)section);
        skip_value(in);
    }
    uint8_t code = take_u8(in);
    if (code != 0xa0 && code != 0xb0)
        die(EXIT_PROTOCOL, "constructor 0x%02x where binary belongs", code);
    size_t size = code == 0xa0 ? take_u8(in) : take_u32(in);
    if (size != options.body_bytes)
        die(EXIT_COUNT, "a body of %zu bytes arrived", size);
    need(in, MIN_BODY_BYTES);
    uint64_t sequence = load_u64(in->at);
    if (options.lossy && sequence > c->received && sequence < per_receiver) {
        lost += sequence - c->received;
        c->received = sequence;
    }
    if (sequence != c->received)
        die(EXIT_COUNT, "message %llu arrived where %llu belongs", (unsigned long long)sequence,
            (unsigned long long)c->received);
    c->stamp_ns = (int64_t)load_u64(in->at + SEQUENCE_BYTES);
    in->at += MIN_BODY_BYTES;
    c->body_left = options.body_bytes - MIN_BODY_BYTES;
}

static void complete_delivery(struct connection *c)
{
    if (c->body_left > 0)
        die(EXIT_COUNT, "a message ended %zu bytes early", c->body_left);
    c->in_delivery = false;
    c->received++;
    if (c->stamp_ns != 0)
        sample(&received_after, c->stamp_ns);
    if (c->unsettled) {
        if (c->to_settle && c->current_id != c->last_id + 1)
            settle_pending(c);
        if (!c->to_settle)
            c->first_id = c->current_id;
        c->last_id = c->current_id;
        c->to_settle = true;
    }
    if (c->received > per_receiver)
        die(EXIT_COUNT, "more messages arrived than were sent");
    if (c->received == per_receiver) {
        c->done = true;
        connection_done();
    }
}

static void on_transfer(struct connection *c, struct cursor in)
{
    if (c->sender)
        die(EXIT_PROTOCOL, "a transfer came to a sender");
    if (!started) /* the sending end is another process: time runs from the first message */
        start();
    struct fields f = take_list(&in);
    field_skip(&f);
    uint32_t id = (uint32_t)field_number(&f, c->current_id);
    field_skip(&f);
    field_skip(&f);
    bool settled = field_number(&f, 0), more = field_number(&f, 0);
    field_skip(&f);
    field_skip(&f);
    field_skip(&f);
    if (field_number(&f, 0))
        die(EXIT_PROTOCOL, "a delivery was aborted");
    if (c->in_window-- == 0)
        die(EXIT_PROTOCOL, "a transfer came without session window");
    c->next_incoming_id++;
    if (c->in_delivery && id != c->current_id)
        die(EXIT_PROTOCOL, "deliveries are interleaved on one link");
    c->current_id = id;
    if (!c->in_delivery)
        begin_delivery(c, &in);
    size_t size = (size_t)(in.end - in.at);
    if (size > c->body_left)
        die(EXIT_COUNT, "a message is too long");
    if (options.verify) {
        const uint8_t *expected = message + message_bytes - c->body_left;
        if (memcmp(expected, in.at, size) != 0)
            die(EXIT_COUNT, "a body was changed on its way");
    }
    c->body_left -= size;
    if (settled)
        c->unsettled = false;
    if (!more)
        complete_delivery(c);
}

/* ---- all other performatives ---- */

static void on_open(struct connection *c, struct cursor in)
{
    struct fields f = take_list(&in);
    field_skip(&f);
    field_skip(&f);
    c->peer_max_frame = (uint32_t)field_number(&f, UINT32_MAX);
    if (c->peer_max_frame < 512)
        die(EXIT_PROTOCOL, "the peer's max-frame-size is below 512");
    field_skip(&f);
    c->peer_idle_ms = (uint32_t)field_number(&f, 0);
    if (c->acceptor)
        send_open(c);
}

static void on_begin(struct connection *c, struct cursor in)
{
    struct fields f = take_list(&in);
    field_skip(&f);
    c->next_incoming_id = (uint32_t)field_number(&f, 0);
    c->window = (uint32_t)field_number(&f, 0);
    c->in_window = INCOMING_WINDOW;
    if (c->acceptor)
        send_begin(c);
}

static void on_attach(struct connection *c, struct cursor in)
{
    struct fields f = take_list(&in);
    field_skip(&f);
    field_skip(&f);
    bool peer_receives = field_number(&f, 0);
    if (peer_receives != c->sender)
        die(EXIT_PROTOCOL, "both ends of a link have one role");
    for (int i = 3; i < 9; i++)
        field_skip(&f);
    if (c->acceptor)
        send_attach(c);
    if (!c->sender)
        c->delivery_count = (uint32_t)field_number(&f, 0);
    c->attached = true;
    attached++;
    start_if_ready();
}

static void on_flow(struct connection *c, struct cursor in)
{
    struct fields f = take_list(&in);
    uint32_t next_incoming_id = (uint32_t)field_number(&f, 0);
    uint32_t window = (uint32_t)field_number(&f, 0);
    c->window = next_incoming_id + window - c->next_outgoing_id;
    field_skip(&f);
    field_skip(&f);
    bool for_link = field_number(&f, UINT64_MAX) != UINT64_MAX;
    uint32_t delivery_count = (uint32_t)field_number(&f, 0);
    uint32_t credit = (uint32_t)field_number(&f, 0);
    field_skip(&f);
    bool drain = field_number(&f, 0), echo = field_number(&f, 0);
    if (for_link && c->sender) {
        c->credit = delivery_count + credit - c->delivery_count;
        if ((int32_t)c->credit < 0)
            c->credit = 0;
        if (drain) {
            c->delivery_count += c->credit;
            c->credit = 0;
        }
        if (c->credit > 0 && !c->credited) {
            c->credited = true;
            credited++;
            start_if_ready();
        }
    }
    if (echo || drain)
        send_flow(c);
}

static void on_disposition(struct connection *c, struct cursor in)
{
    struct fields f = take_list(&in);
    if (!field_number(&f, 0))
        return; /* a sender's word to our receiver, which has settled already */
    if (!c->sender)
        die(EXIT_PROTOCOL, "a receiver's disposition came to a receiver");
    uint32_t first = (uint32_t)field_number(&f, 0), last = (uint32_t)field_number(&f, first);
    bool settled = field_number(&f, 0);
    uint64_t state = 0;
    if (f.left > 0 && f.in.at < f.in.end && *f.in.at == 0)
        state = take_descriptor(&f.in);
    if (state != ACCEPTED)
        die(EXIT_PROTOCOL, "a message was not accepted: outcome 0x%llx", (unsigned long long)state);
    c->settled += last - first + 1;
    if (c->settled > c->sent)
        die(EXIT_PROTOCOL, "more messages were settled than sent");
    for (uint64_t id = (first + sample_every - 1) / sample_every * sample_every; id <= last;
         id += sample_every)
        sample(&settled_after, sent_at_ns[c->index][id / sample_every]);
    if (!settled)
        send_disposition(c, false, first, last);
}

static void on_end_of_something(struct connection *c, uint64_t code, struct cursor in)
{
    char condition[128] = "no error given";
    struct fields f = take_list(&in);
    for (int i = code == DETACH ? 2 : 0; i > 0; i--)
        field_skip(&f);
    if (f.left > 0 && f.in.end - f.in.at > 8 && *f.in.at == 0) {
        take_descriptor(&f.in);
        struct fields error = take_list(&f.in);
        if (error.left > 0 && take_u8(&error.in) == 0xa3) {
            size_t size = take_u8(&error.in);
            need(&error.in, size);
            snprintf(condition, sizeof condition, "%.*s", (int)size, error.in.at);
        }
    }
    if (!c->closing)
        die(EXIT_PROTOCOL, "the peer said %s: %s",
            code == DETACH ? "detach" : code == END ? "end" : "close", condition);
}

static void on_amqp_frame(struct connection *c, struct cursor in)
{
    uint64_t code = take_descriptor(&in);
    switch (code) {
    case TRANSFER: on_transfer(c, in); break;
    case DISPOSITION: on_disposition(c, in); break;
    case FLOW: on_flow(c, in); break;
    case OPEN: on_open(c, in); break;
    case BEGIN: on_begin(c, in); break;
    case ATTACH: on_attach(c, in); break;
    case DETACH: case END: case CLOSE: on_end_of_something(c, code, in); break;
    default: die(EXIT_PROTOCOL, "unknown performative 0x%llx", (unsigned long long)code);
    }
}

static void on_sasl_frame(struct connection *c, struct cursor in)
{
    size_t start;
    uint64_t code = take_descriptor(&in);
    struct fields f = take_list(&in);
    switch (code) {
    case SASL_MECHANISMS:
        start = frame_begin(&c->out, 1, SASL_INIT);
        put_text(&c->out, 0xa3, "ANONYMOUS");
        frame_end(&c->out, start, 1);
        break;
    case SASL_INIT:
        start = frame_begin(&c->out, 1, SASL_OUTCOME);
        put_ubyte(&c->out, 0);
        frame_end(&c->out, start, 1);
        c->need_header = true;
        break;
    case SASL_OUTCOME:
        if (field_number(&f, 255) != 0)
            die(EXIT_PROTOCOL, "ANONYMOUS was refused");
        send_opening(c);
        c->need_header = true;
        break;
    default: die(EXIT_PROTOCOL, "unknown SASL frame 0x%llx", (unsigned long long)code);
    }
}

static void on_header(struct connection *c, const uint8_t *header)
{
    if (memcmp(header, "AMQP", 4) != 0)
        die(EXIT_PROTOCOL, "the peer does not speak AMQP");
    uint8_t protocol = header[4];
    c->need_header = false;
    if (!c->acceptor) {
        if (protocol != (c->header_sent || options.no_sasl ? 0 : 3))
            die(EXIT_PROTOCOL, "the peer answers with protocol %u", protocol);
        c->header_sent = true;
        return;
    }
    send_header(c, protocol);
    if (protocol == 3) {
        size_t start = frame_begin(&c->out, 1, SASL_MECHANISMS);
        put_text(&c->out, 0xa3, "ANONYMOUS");
        frame_end(&c->out, start, 1);
    }
}

/* ---- sockets ---- */

static void consume(struct connection *c)
{
    for (;;) {
        const uint8_t *p = c->in + c->in_begin;
        size_t there = c->in_end - c->in_begin;
        if (there < 8)
            break;
        if (c->need_header) {
            on_header(c, p);
            c->in_begin += 8;
            continue;
        }
        uint32_t size = load_u32(p), head = p[4] * 4u;
        if (size > MAX_FRAME_BYTES || size < 8 || head < 8 || head > size)
            die(EXIT_PROTOCOL, "a frame of %u bytes came", size);
        if (there < size)
            break;
        c->in_begin += size;
        if (size == head)
            continue; /* an empty frame keeps a connection alive */
        struct cursor in = {p + head, p + size};
        if (p[5] == 1)
            on_sasl_frame(c, in);
        else
            on_amqp_frame(c, in);
    }
    memmove(c->in, c->in + c->in_begin, c->in_end - c->in_begin);
    c->in_end -= c->in_begin;
    c->in_begin = 0;
}

static void hang_up(struct connection *c)
{
    close(c->fd);
    c->fd = -1;
    opened--;
}

static void read_some(struct connection *c)
{
    ssize_t got = recv(c->fd, c->in + c->in_end, c->in_size - c->in_end, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        if (!c->closing)
            die(EXIT_PROTOCOL, "the peer hung up: %s", got < 0 ? strerror(errno) : "end of stream");
        hang_up(c);
        return;
    }
    c->in_end += (size_t)got;
    if (options.lossy && !c->sender)
        received_ns = now_ns(CLOCK_MONOTONIC);
    consume(c);
    if (!c->sender)
        answer(c);
}

static void adopt(struct connection *c, int fd)
{
    int yes = 1;
    size_t read_bytes = options.idle ? MAX_FRAME_BYTES : READ_BYTES;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    c->fd = fd;
    c->need_header = true;
    c->peer_max_frame = 512;
    c->in_size = read_bytes + MAX_FRAME_BYTES;
    c->in = malloc(c->in_size);
    c->out.size = 4 * read_bytes;
    c->out.data = malloc(c->out.size);
    if (c->in == NULL || c->out.data == NULL)
        die(EXIT_USAGE, "out of memory");
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        die(EXIT_USAGE, "epoll_ctl: %s", strerror(errno));
    opened++;
}

static struct sockaddr_in socket_address(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, options.host, &a.sin_addr) != 1)
        die(EXIT_USAGE, "not an IPv4 address: %s", options.host);
    if (ntohl(a.sin_addr.s_addr) >> 24 != 127)
        die(EXIT_USAGE, "%s is not a loopback address", options.host);
    return a;
}

static void dial(struct connection *c)
{
    struct sockaddr_in a = socket_address(options.port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        die(EXIT_USAGE, "connect to port %d: %s", options.port, strerror(errno));
    adopt(c, fd);
    if (options.no_sasl)
        send_opening(c);
    else
        send_header(c, 3);
    flush(c);
}

static void listen_for_senders(void)
{
    int yes = 1;
    struct sockaddr_in a = socket_address(options.direct_port);
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listen_fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(listen_fd, 128) < 0)
        die(EXIT_USAGE, "listen on port %d: %s", options.direct_port, strerror(errno));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event);
}

static void accept_sender(void)
{
    static uint32_t accepted;
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (accepted == options.pairs)
        die(EXIT_PROTOCOL, "one connection too many came in");
    struct connection *c = &connections[accepted];
    c->index = accepted++;
    c->acceptor = true;
    adopt(c, fd);
}

/* Receivers stand first in the table and are attached before any sender dials. */
static void dial_next(void)
{
    static uint32_t next;
    uint32_t receivers = options.direct_port || !options.receive_role ? 0
                         : options.idle                              ? options.idle
                         : options.fan_out > 1                       ? options.fan_out
                                                                     : options.pairs;
    uint32_t first = options.direct_port ? options.pairs : 0;
    while (first + next < connection_count && next - (attached < next ? attached : next) < MAX_HANDSHAKES) {
        if (next == receivers && attached < receivers)
            return;
        struct connection *c = &connections[first + next];
        c->sender = next >= receivers;
        c->index = c->sender ? next - receivers : next;
        next++;
        dial(c);
    }
}

/* Send an empty frame wherever nothing was sent for a second and the peer has an idle time-out. */
static void keep_alive(void)
{
    static int64_t last_ns;
    int64_t now = now_ns(CLOCK_MONOTONIC);
    if (now - last_ns < 1000000000)
        return;
    last_ns = now;
    for (uint32_t i = 0; i < connection_count; i++) {
        struct connection *c = &connections[i];
        if (c->fd < 0)
            continue;
        if (c->quiet && c->peer_idle_ms && c->out.begin == c->out.end) {
            put_raw(&c->out, (uint8_t[]){0, 0, 0, 8, 2, 0, 0, 0}, 8);
            flush(c);
        }
        c->quiet = true;
    }
}

/* Where messages may be lost, the last ones may be: a second of silence ends the waiting. */
static void give_up_lost(void)
{
    int64_t now = now_ns(CLOCK_MONOTONIC);
    if (!started || received_ns == 0 || now - received_ns < 1000000000)
        return;
    for (uint32_t i = 0; i < connection_count; i++)
        if (connections[i].sender && !connections[i].done)
            return;
    for (uint32_t i = 0; i < connection_count; i++) {
        struct connection *c = &connections[i];
        if (c->sender || c->done)
            continue;
        lost += per_receiver - c->received;
        c->done = true;
        connection_done();
    }
    finished_ns = received_ns;
}

static void turn(void)
{
    struct epoll_event events[MAX_EVENTS];
    int count = epoll_wait(epoll_fd, events, MAX_EVENTS, 200);
    for (int i = 0; i < count; i++) {
        struct connection *c = events[i].data.ptr;
        if (c == NULL) {
            accept_sender();
            continue;
        }
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            read_some(c);
        if (c->fd >= 0)
            flush(c);
    }
    keep_alive();
    if (options.lossy && done < connection_count)
        give_up_lost();
}

static void turn_until(const uint32_t *value, uint32_t wanted, int64_t deadline_ns, const char *what)
{
    for (; *value != wanted; turn()) {
        dial_next();
        if (now_ns(CLOCK_MONOTONIC) > deadline_ns)
            die(EXIT_DEADLINE, "no time left for %s: %u of %u", what, *value, wanted);
    }
}

static void close_all(void)
{
    for (uint32_t i = 0; i < connection_count; i++) {
        struct connection *c = &connections[i];
        c->closing = true;
        if (c->fd < 0)
            continue;
        size_t start = frame_begin(&c->out, 0, CLOSE);
        frame_end(&c->out, start, 0);
        flush(c);
        shutdown(c->fd, SHUT_WR);
    }
    int64_t deadline_ns = now_ns(CLOCK_MONOTONIC) + 3000000000;
    while (opened > 0 && now_ns(CLOCK_MONOTONIC) < deadline_ns)
        turn();
}

/* ---- the report ---- */

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double percentile_us(const struct samples *s, double part)
{
    return s->count ? (double)s->ns[(size_t)(part * (double)(s->count - 1))] / 1e3 : 0;
}

static void report(void)
{
    double seconds = (double)(finished_ns - started_ns) / 1e9;
    double deliveries = (double)(per_sender * options.pairs * options.fan_out - lost);
    qsort(received_after.ns, received_after.count, sizeof(int64_t), compare_ns);
    qsort(settled_after.ns, settled_after.count, sizeof(int64_t), compare_ns);
    printf("{\"messages\": %llu, \"deliveries\": %.0f, \"lost\": %llu, \"body_bytes\": %zu, \"seconds\": %.6f, "
           "\"rate\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"settled_p50_us\": %.1f, "
           "\"settled_p99_us\": %.1f, \"own_cpu_s\": %.6f",
           (unsigned long long)per_sender * options.pairs, deliveries, (unsigned long long)lost,
           options.body_bytes, seconds,
           deliveries / seconds, percentile_us(&received_after, 0.5),
           percentile_us(&received_after, 0.99), percentile_us(&settled_after, 0.5),
           percentile_us(&settled_after, 0.99), (double)own_cpu_ns / 1e9);
    if (options.pid)
        printf(", \"router_cpu_s\": %.6f, \"rss_bytes\": %lld, \"peak_rss_bytes\": %lld",
               (double)router_cpu_ns / 1e9,
               (long long)process_memory_bytes(options.pid, "VmRSS:"),
               (long long)process_memory_bytes(options.pid, "VmHWM:"));
    puts("}");
}

static void run_idle(int64_t deadline_ns)
{
    long long before = process_memory_bytes(options.pid, "VmRSS:");
    turn_until(&attached, options.idle, deadline_ns, "attaching idle links");
    int64_t until_ns = now_ns(CLOCK_MONOTONIC) + (int64_t)(options.hold_s * 1e9);
    do
        turn();
    while (now_ns(CLOCK_MONOTONIC) < until_ns);
    long long held = process_memory_bytes(options.pid, "VmRSS:");
    close_all();
    printf("{\"idle\": %u, \"rss_before_bytes\": %lld, \"rss_held_bytes\": %lld, "
           "\"bytes_each\": %.0f}\n",
           options.idle, before, held, (double)(held - before) / options.idle);
}

/* ---- options ---- */

static const char usage[] =
    "usage: load --port PORT [options]\n"
    "  --host H        a loopback address (127.0.0.1)\n"
    "  --address A     address; pair i uses A/i, a fan-out uses A (bench)\n"
    "  --pairs N       senders, each with its receiver, two connections a pair (1)\n"
    "  --fan-out M     one sender, M receivers of one multicast address (1)\n"
    "  --count N       messages in all (100000)\n"
    "  --body B        body bytes, at least 16 (100)\n"
    "  --credit N      link credit of a receiver, topped up when half is used (1000)\n"
    "  --inflight N    unsettled messages that a sender allows itself; 0: any number (0)\n"
    "  --presettled    send settled\n"
    "  --lossy         count messages that do not arrive instead of failing\n"
    "  --role R        both, send or receive (both)\n"
    "  --direct PORT   the receivers listen on PORT, behind a byte relay at --port\n"
    "  --idle N        open N idle connections with a receiver each, and no message\n"
    "  --hold S        seconds to hold idle connections (0)\n"
    "  --pid PID       process to account for\n"
    "  --verify        compare every byte of every body\n"
    "  --no-sasl       start without a SASL layer\n"
    "  --deadline S    give up after S seconds (60)\n";

static uint64_t positive(const char *text)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    if (*end != '\0' || *text == '-')
        die(EXIT_USAGE, "not a number: %s", text);
    return v;
}

static void read_options(int argc, char **argv)
{
    enum { HOST = 1, PORT, ADDRESS, PAIRS, FAN_OUT, COUNT, BODY, CREDIT, INFLIGHT, PRESETTLED, LOSSY,
           ROLE, DIRECT, IDLE, HOLD, PID, VERIFY, NO_SASL, DEADLINE };
    static const struct option names[] = {
        {"host", 1, 0, HOST}, {"port", 1, 0, PORT}, {"address", 1, 0, ADDRESS},
        {"pairs", 1, 0, PAIRS}, {"fan-out", 1, 0, FAN_OUT}, {"count", 1, 0, COUNT},
        {"body", 1, 0, BODY}, {"credit", 1, 0, CREDIT}, {"inflight", 1, 0, INFLIGHT},
        {"presettled", 0, 0, PRESETTLED}, {"lossy", 0, 0, LOSSY}, {"role", 1, 0, ROLE}, {"direct", 1, 0, DIRECT},
        {"idle", 1, 0, IDLE}, {"hold", 1, 0, HOLD}, {"pid", 1, 0, PID}, {"verify", 0, 0, VERIFY},
        {"no-sasl", 0, 0, NO_SASL}, {"deadline", 1, 0, DEADLINE}, {0},
    };
    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (name) {
        case HOST: options.host = optarg; break;
        case PORT: options.port = (int)positive(optarg); break;
        case ADDRESS: options.address = optarg; break;
        case PAIRS: options.pairs = (uint32_t)positive(optarg); break;
        case FAN_OUT: options.fan_out = (uint32_t)positive(optarg); break;
        case COUNT: options.count = positive(optarg); break;
        case BODY: options.body_bytes = positive(optarg); break;
        case CREDIT: options.credit = (uint32_t)positive(optarg); break;
        case INFLIGHT: options.inflight = (uint32_t)positive(optarg); break;
        case PRESETTLED: options.presettled = true; break;
        case LOSSY: options.lossy = true; break;
        case ROLE:
            options.send_role = strcmp(optarg, "receive") != 0;
            options.receive_role = strcmp(optarg, "send") != 0;
            break;
        case DIRECT: options.direct_port = (int)positive(optarg); break;
        case IDLE: options.idle = (uint32_t)positive(optarg); break;
        case HOLD: options.hold_s = atof(optarg); break;
        case PID: options.pid = (int)positive(optarg); break;
        case VERIFY: options.verify = true; break;
        case NO_SASL: options.no_sasl = true; break;
        case DEADLINE: options.deadline_s = atof(optarg); break;
        default: fputs(usage, stderr); exit(EXIT_USAGE);
        }
    }
    bool both = options.send_role && options.receive_role;
    if (!options.port || !options.pairs || !options.fan_out || !options.credit
        || options.body_bytes < MIN_BODY_BYTES || options.count < options.pairs
        || (options.fan_out > 1 && options.pairs > 1)
        || (options.direct_port && (options.fan_out > 1 || options.idle || !both))) {
        fputs(usage, stderr);
        exit(EXIT_USAGE);
    }
}

static void make_message(void)
{
    bool small = options.body_bytes <= 255;
    body_at = small ? 5 : 8;
    message_bytes = body_at + options.body_bytes;
    message = malloc(message_bytes);
    memcpy(message, (uint8_t[]){0x00, 0x53, DATA, small ? 0xa0 : 0xb0}, 4);
    if (small)
        message[4] = (uint8_t)options.body_bytes;
    else
        store_u32(message + 4, (uint32_t)options.body_bytes);
    for (size_t i = 0; i < options.body_bytes; i++)
        message[body_at + i] = i < MIN_BODY_BYTES ? 0 : (uint8_t)(i * 7 + i / 251);
}

static void prepare(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    uint32_t receivers = options.fan_out > 1 ? options.fan_out : options.pairs;
    connection_count = options.idle ? options.idle
                       : (options.receive_role ? receivers : 0)
                             + (options.send_role ? options.pairs : 0);
    per_sender = options.count / options.pairs;
    per_receiver = per_sender;
    sample_every = 1 + options.count / 65536;
    size_t each = per_sender / sample_every + 1;
    sent_at_ns = calloc(options.pairs, sizeof *sent_at_ns);
    for (uint32_t i = 0; i < options.pairs; i++)
        sent_at_ns[i] = calloc(each, sizeof(int64_t));
    settled_after.size = each * options.pairs;
    received_after.size = each * receivers;
    settled_after.ns = calloc(settled_after.size, sizeof(int64_t));
    received_after.ns = calloc(received_after.size, sizeof(int64_t));
    connections = calloc(connection_count, sizeof *connections);
    for (uint32_t i = 0; i < connection_count; i++)
        connections[i].fd = -1;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    make_message();
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    prepare();
    int64_t deadline_ns = now_ns(CLOCK_MONOTONIC) + (int64_t)(options.deadline_s * 1e9);
    if (options.idle) {
        run_idle(deadline_ns);
        return 0;
    }
    if (options.direct_port)
        listen_for_senders();
    turn_until(&done, connection_count, deadline_ns, "all messages");
    report();
    fflush(stdout);
    close_all();
    return 0;
}
