/* Frames from the peer, each checked as far as the benchmark relies on it (part 2 section 2.7). */
#include "load.h"

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
    if (options.lossy && sequence > c->received && sequence < run.per_receiver) {
        run.lost += sequence - c->received;
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
        sample(&run.received_after, c->stamp_ns);
    if (c->unsettled) {
        if (c->to_settle && c->current_id != c->last_id + 1)
            settle_pending(c);
        if (!c->to_settle)
            c->first_id = c->current_id;
        c->last_id = c->current_id;
        c->to_settle = true;
    }
    if (c->received > run.per_receiver)
        die(EXIT_COUNT, "more messages arrived than were sent");
    if (c->received == run.per_receiver)
        connection_done(c);
}

static void on_transfer(struct connection *c, struct cursor in)
{
    if (c->sender)
        die(EXIT_PROTOCOL, "a transfer came to a sender");
    if (!run.started) /* the sending end is another process: time runs from the first message */
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
        const uint8_t *expected = run.message + run.message_bytes - c->body_left;
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
    uint32_t max_frame = (uint32_t)field_number(&f, UINT32_MAX);
    if (max_frame < MIN_MAX_FRAME_BYTES)
        die(EXIT_PROTOCOL, "the peer's max-frame-size is %u", max_frame);
    c->frame_limit = max_frame < MAX_FRAME_BYTES ? max_frame : MAX_FRAME_BYTES;
    field_skip(&f);
    c->peer_idle_ms = (uint32_t)field_number(&f, 0);
    if (c->acceptor)
        send_open(c);
    if (c->container)
        run.ready++;
}

static void on_begin(struct connection *c, struct cursor in)
{
    struct fields f = take_list(&in);
    field_skip(&f);
    c->next_incoming_id = (uint32_t)field_number(&f, 0);
    c->window = (uint32_t)field_number(&f, 0);
    c->in_window = INCOMING_WINDOW;
    if (c->acceptor || c->container)
        send_begin(c);
}

static void on_attach(struct connection *c, struct cursor in)
{
    struct fields f = take_list(&in);
    field_text(&f, c->link_name, sizeof c->link_name);
    field_skip(&f);
    bool peer_receives = field_number(&f, 0);
    if (peer_receives != c->sender)
        die(EXIT_PROTOCOL, "both ends of a link have one role");
    field_skip(&f);
    field_skip(&f);
    const uint8_t *source = f.in.at;
    field_skip(&f);
    field_skip(&f);
    c->termini_bytes = (size_t)(f.in.at - source);
    if (c->termini_bytes > sizeof c->termini)
        die(EXIT_PROTOCOL, "source and target are too long");
    memcpy(c->termini, source, c->termini_bytes);
    field_skip(&f);
    field_skip(&f);
    if (c->acceptor || c->container)
        send_attach(c);
    if (!c->container)
        run.ready++;
    if (!c->sender)
        c->delivery_count = (uint32_t)field_number(&f, 0);
    c->attached = true;
    run.attached++;
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
            run.credited++;
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
    if (c->settled > c->sent || last >= c->sent)
        die(EXIT_PROTOCOL, "more messages were settled than sent");
    uint64_t every = run.sample_every;
    for (uint64_t id = (first + every - 1) / every * every; id <= last; id += every)
        sample(&run.settled_after, run.sent_at_ns[c->index][id / every]);
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
    if (c->closing)
        c->closed = code == CLOSE;
    else
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

void consume(struct connection *c)
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
