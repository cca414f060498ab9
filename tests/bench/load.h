/* What the parts of the load generator share: its options, its connections, and the run so far.
 *
 * load.c   the run: who dials when, when time starts and stops, the report
 * options.c the command line
 * sockets.c connections and the event loop
 * tls.c    octets to and from the peer, with TLS or without
 * speak.c  frames to the peer; what a sender may send
 * hear.c   frames from the peer
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <sys/types.h>
#include <time.h>

#include "wire.h"

enum {
    SEQUENCE_BYTES = 8, /* a body starts with a message's number and the time it was sent */
    MIN_BODY_BYTES = 16,
    MIN_MAX_FRAME_BYTES = 512,
    MAX_FRAME_BYTES = 65536,
    INCOMING_WINDOW = 1 << 20,
};

struct options {
    const char *host, *address, *container_id, *certificate;
    int port, direct_port, container_port, receive_port, pid;
    uint32_t pairs, fan_out, credit, inflight, idle;
    uint64_t count;
    size_t body_bytes;
    double deadline_s, hold_s;
    bool presettled, lossy, no_sasl, verify, tls, send_role, receive_role;
    bool container_sends, container_receives;
};

/* Each connection has one session with one link, all three numbered 0. A container dials, as a
 * client does, and then answers the session and the link that its peer begins, as an acceptor does. */
struct connection {
    int fd;
    struct ssl_st *tls; /* NULL without TLS */
    uint32_t index;
    bool sender, acceptor, container, need_header, header_sent, attached, armed, closing, closed;
    bool quiet, done;
    uint8_t termini[512]; /* a container's link has those that its peer said */
    size_t termini_bytes;
    char link_name[256];
    struct output out;
    uint8_t *in;
    size_t in_begin, in_end, in_size;
    uint32_t frame_limit, peer_idle_ms;

    /* sender: session window, link credit, and what has been sent and settled */
    uint32_t next_outgoing_id, window, delivery_count, credit;
    uint64_t sent, settled;
    size_t message_at;
    bool credited;

    /* receiver: what it has granted, and what it has yet to answer */
    uint32_t next_incoming_id, granted, in_window, first_id, last_id, current_id;
    uint64_t received;
    size_t body_left;
    int64_t stamp_ns;
    bool in_delivery, unsettled, to_settle;
};

struct samples {
    int64_t *ns;
    size_t count, size;
};

struct run {
    struct connection *connections;
    uint32_t connection_count, opened, ready, attached, credited, done;
    uint64_t per_sender, per_receiver, sample_every, lost;
    int64_t started_ns, received_ns, finished_ns, own_cpu_ns, router_cpu_ns;
    struct samples received_after, settled_after;
    int64_t **sent_at_ns; /* for each sender, for each sampled message */
    uint8_t *message;     /* one encoded message: a data section */
    size_t message_bytes, body_at;
    bool started;
};

extern struct options options;
extern struct run run;

static inline int64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void sample(struct samples *s, int64_t since_ns)
{
    if (s->count < s->size)
        s->ns[s->count++] = now_ns(CLOCK_MONOTONIC) - since_ns;
}

/* load.c */
void start(void);
void start_if_ready(void);
void connection_done(struct connection *c);

/* options.c */
void read_options(int argc, char **argv);

/* sockets.c */
void open_sockets(void);
void dial(struct connection *c);
void flush(struct connection *c);
void turn(void);

/* tls.c */
void prepare_tls(void);
void shake_hands(struct connection *c, bool accepts);
void end_tls(struct connection *c);
ssize_t send_octets(struct connection *c, const uint8_t *data, size_t count);
ssize_t receive_octets(struct connection *c, uint8_t *data, size_t count);
bool octets_pending(const struct connection *c);

/* speak.c */
void send_header(struct connection *c, uint8_t protocol);
void send_open(struct connection *c);
void send_begin(struct connection *c);
void send_attach(struct connection *c);
void send_opening(struct connection *c);
void send_close(struct connection *c);
void send_flow(struct connection *c);
void send_disposition(struct connection *c, bool role, uint32_t first, uint32_t last);
void settle_pending(struct connection *c);
void answer(struct connection *c);
bool may_send(const struct connection *c);
void fill(struct connection *c);

/* hear.c */
void consume(struct connection *c);

#endif
