/* Frames to the peer, and how much a sender may send (part 2 sections 2.5 to 2.7). */
#include <unistd.h>

#include "load.h"

enum { TRANSFER_HEAD_BYTES = 29, FILL_BYTES = 256 * 1024 };

/* ---- what is said at the start of a connection ---- */

void send_header(struct connection *c, uint8_t protocol)
{
    put_raw(&c->out, (uint8_t[]){'A', 'M', 'Q', 'P', protocol, 1, 0, 0}, 8);
}

void send_open(struct connection *c)
{
    char name[128];
    if (c->container)
        snprintf(name, sizeof name, "%s", options.container_id);
    else
        snprintf(name, sizeof name, "bench-%d-%s-%u", getpid(), c->sender ? "s" : "r", c->index);
    size_t start = frame_begin(&c->out, 0, OPEN);
    put_text(&c->out, 0xa1, name);
    put_null(&c->out);
    put_uint(&c->out, MAX_FRAME_BYTES);
    put_ushort(&c->out, 255);
    frame_end(&c->out, start, 4);
}

void send_begin(struct connection *c)
{
    size_t start = frame_begin(&c->out, 0, BEGIN);
    if (c->acceptor || c->container)
        put_ushort(&c->out, 0);
    else
        put_null(&c->out);
    put_uint(&c->out, 0);
    put_uint(&c->out, INCOMING_WINDOW);
    put_uint(&c->out, INCOMING_WINDOW);
    put_uint(&c->out, 255);
    frame_end(&c->out, start, 5);
}

void send_attach(struct connection *c)
{
    char name[256], address[256];
    if (c->container)
        snprintf(name, sizeof name, "%s", c->link_name);
    else
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
    if (c->container) {
        put_raw(&c->out, c->termini, c->termini_bytes);
    } else {
        put_terminus(&c->out, 0x28, address);
        put_terminus(&c->out, 0x29, address);
    }
    put_null(&c->out);
    put_null(&c->out);
    if (c->sender)
        put_uint(&c->out, 0);
    else
        put_null(&c->out);
    frame_end(&c->out, start, 10);
}

void send_opening(struct connection *c)
{
    send_header(c, 0);
    send_open(c);
    if (c->container)
        return;
    send_begin(c);
    send_attach(c);
}

void send_close(struct connection *c)
{
    size_t start = frame_begin(&c->out, 0, CLOSE);
    frame_end(&c->out, start, 0);
}

/* ---- flows and dispositions ---- */

void send_flow(struct connection *c)
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

void send_disposition(struct connection *c, bool role, uint32_t first, uint32_t last)
{
    size_t start = frame_begin(&c->out, 0, DISPOSITION);
    put_bool(&c->out, role);
    put_uint(&c->out, first);
    put_uint(&c->out, last);
    put_bool(&c->out, true);
    put_raw(&c->out, (uint8_t[]){0x00, 0x53, ACCEPTED, 0x45}, 4);
    frame_end(&c->out, start, 5);
}

void settle_pending(struct connection *c)
{
    if (c->to_settle)
        send_disposition(c, true, c->first_id, c->last_id);
    c->to_settle = false;
}

/* Once for each read: settle what has come, and top the credit up when half of it is used. */
void answer(struct connection *c)
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
    return c->sent < run.per_sender && c->credit > 0
           && (options.inflight == 0 || c->sent - c->settled < options.inflight);
}

bool may_send(const struct connection *c)
{
    return run.started && c->window > 0 && (c->message_at > 0 || may_begin_message(c));
}

static void put_transfer(struct connection *c)
{
    size_t left = run.message_bytes - c->message_at, chunk = c->frame_limit - TRANSFER_HEAD_BYTES;
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
    memcpy(p + TRANSFER_HEAD_BYTES, run.message + c->message_at, chunk);
    c->window--;
    c->next_outgoing_id++;
    if (c->message_at == 0) {
        uint8_t *body = p + TRANSFER_HEAD_BYTES + run.body_at;
        store_u64(body, c->sent);
        if (c->sent % run.sample_every == 0) {
            int64_t now = now_ns(CLOCK_MONOTONIC);
            store_u64(body + SEQUENCE_BYTES, (uint64_t)now);
            run.sent_at_ns[c->index][c->sent / run.sample_every] = now;
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

void fill(struct connection *c)
{
    while (c->out.end - c->out.begin < FILL_BYTES && may_send(c))
        put_transfer(c);
}
