/* The few AMQP 1.0 words that the load generator speaks: a checked read cursor and an output
 * buffer (types: part 1 section 1.6; performatives: part 2 section 2.7; SASL: part 5 section 5.3).
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum exit_code { EXIT_USAGE = 1, EXIT_PROTOCOL = 2, EXIT_DEADLINE = 3, EXIT_COUNT = 4 };

_Noreturn void die(enum exit_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum performative {
    OPEN = 0x10, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE,
};
enum sasl_performative { SASL_MECHANISMS = 0x40, SASL_INIT = 0x41, SASL_OUTCOME = 0x44 };
enum outcome { ACCEPTED = 0x24, REJECTED, RELEASED, MODIFIED };
enum section {
    HEADER = 0x70,
    DELIVERY_ANNOTATIONS,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    APPLICATION_PROPERTIES,
    DATA,
};

static inline uint16_t load_u16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return __builtin_bswap16(v);
}

static inline uint32_t load_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

static inline uint64_t load_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return __builtin_bswap64(v);
}

static inline void store_u16(uint8_t *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, 2);
}

static inline void store_u32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}

static inline void store_u64(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, 8);
}

/* ---- reading ---- */

struct cursor {
    const uint8_t *at, *end;
};

static inline void need(const struct cursor *c, size_t bytes)
{
    if ((size_t)(c->end - c->at) < bytes)
        die(EXIT_PROTOCOL, "a value runs past the end of its frame");
}

static inline uint8_t take_u8(struct cursor *c)
{
    need(c, 1);
    return *c->at++;
}

static inline uint32_t take_u32(struct cursor *c)
{
    need(c, 4);
    uint32_t v = load_u32(c->at);
    c->at += 4;
    return v;
}

static inline void take_bytes(struct cursor *c, size_t bytes)
{
    need(c, bytes);
    c->at += bytes;
}

/* Step over one value. The upper half of a constructor tells its width (section 1.2). */
static inline void skip_value(struct cursor *c)
{
    uint8_t code = take_u8(c);
    switch (code >> 4) {
    case 0x0:
        skip_value(c);
        skip_value(c);
        return;
    case 0x4: return;
    case 0x5: take_bytes(c, 1); return;
    case 0x6: take_bytes(c, 2); return;
    case 0x7: take_bytes(c, 4); return;
    case 0x8: take_bytes(c, 8); return;
    case 0x9: take_bytes(c, 16); return;
    case 0xa: case 0xc: case 0xe: take_bytes(c, take_u8(c)); return;
    case 0xb: case 0xd: case 0xf: take_bytes(c, take_u32(c)); return;
    default: die(EXIT_PROTOCOL, "unknown constructor 0x%02x", code);
    }
}

/* Read an unsigned integer or boolean; null gives `absent`. */
static inline uint64_t take_number(struct cursor *c, uint64_t absent)
{
    uint64_t v;
    uint8_t code = take_u8(c);
    switch (code) {
    case 0x40: return absent;
    case 0x41: return 1;
    case 0x42: case 0x43: case 0x44: return 0;
    case 0x50: case 0x52: case 0x53: case 0x56: return take_u8(c);
    case 0x60:
        need(c, 2);
        v = load_u16(c->at);
        c->at += 2;
        return v;
    case 0x70: return take_u32(c);
    case 0x80:
        need(c, 8);
        v = load_u64(c->at);
        c->at += 8;
        return v;
    default: die(EXIT_PROTOCOL, "constructor 0x%02x where a number belongs", code);
    }
}

/* Read a described value's descriptor, which must be a number here; the value follows. */
static inline uint64_t take_descriptor(struct cursor *c)
{
    if (take_u8(c) != 0)
        die(EXIT_PROTOCOL, "a described type was expected");
    return take_number(c, 0);
}

struct fields {
    struct cursor in;
    uint32_t left;
};

/* Open a list; fields that the peer left out at its end read as null. */
static inline struct fields take_list(struct cursor *c)
{
    struct fields f = {.in = *c};
    uint32_t size;
    uint8_t code = take_u8(&f.in);
    switch (code) {
    case 0x45:
        c->at = f.in.at;
        f.in.end = f.in.at;
        return f;
    case 0xc0:
        size = take_u8(&f.in);
        need(&f.in, size);
        f.in.end = f.in.at + size;
        f.left = take_u8(&f.in);
        break;
    case 0xd0:
        size = take_u32(&f.in);
        need(&f.in, size);
        f.in.end = f.in.at + size;
        f.left = take_u32(&f.in);
        break;
    default: die(EXIT_PROTOCOL, "constructor 0x%02x where a list belongs", code);
    }
    c->at = f.in.end;
    return f;
}

static inline uint64_t field_number(struct fields *f, uint64_t absent)
{
    if (f->left == 0)
        return absent;
    f->left--;
    return take_number(&f->in, absent);
}

static inline void field_skip(struct fields *f)
{
    if (f->left == 0)
        return;
    f->left--;
    skip_value(&f->in);
}

/* A string or symbol, ended with a zero, as far as it fits; empty where there is none. */
static inline void field_text(struct fields *f, char *text, size_t size)
{
    text[0] = '\0';
    if (f->left == 0)
        return;
    struct cursor in = f->in;
    field_skip(f);
    uint8_t code = take_u8(&in);
    if (code != 0xa1 && code != 0xa3 && code != 0xb1 && code != 0xb3)
        return;
    size_t length = code < 0xb0 ? take_u8(&in) : take_u32(&in);
    need(&in, length);
    snprintf(text, size, "%.*s", (int)length, in.at);
}

/* ---- writing ---- */

struct output {
    uint8_t *data;
    size_t begin, end, size;
};

static inline uint8_t *room(struct output *o, size_t bytes)
{
    if (o->begin == o->end)
        o->begin = o->end = 0;
    if (o->size - o->end < bytes)
        die(EXIT_USAGE, "output buffer exhausted");
    uint8_t *p = o->data + o->end;
    o->end += bytes;
    return p;
}

static inline void put_raw(struct output *o, const void *bytes, size_t size)
{
    memcpy(room(o, size), bytes, size);
}

static inline void put_u8(struct output *o, uint8_t v) { *room(o, 1) = v; }
static inline void put_null(struct output *o) { put_u8(o, 0x40); }
static inline void put_bool(struct output *o, bool v) { put_u8(o, v ? 0x41 : 0x42); }

static inline void put_ubyte(struct output *o, uint8_t v)
{
    uint8_t *p = room(o, 2);
    p[0] = 0x50;
    p[1] = v;
}

static inline void put_ushort(struct output *o, uint16_t v)
{
    uint8_t *p = room(o, 3);
    p[0] = 0x60;
    store_u16(p + 1, v);
}

static inline void put_uint(struct output *o, uint32_t v)
{
    uint8_t *p = room(o, 5);
    p[0] = 0x70;
    store_u32(p + 1, v);
}

/* A string (0xa1) or symbol (0xa3) of at most 255 bytes. */
static inline void put_text(struct output *o, uint8_t code, const char *text)
{
    size_t size = strlen(text);
    if (size > 255)
        die(EXIT_USAGE, "text too long: %s", text);
    put_u8(o, code);
    put_u8(o, (uint8_t)size);
    put_raw(o, text, size);
}

/* A described list with one field, a string: what a source or target needs. */
static inline void put_terminus(struct output *o, uint8_t descriptor, const char *address)
{
    put_raw(o, (uint8_t[]){0x00, 0x53, descriptor, 0xc0, (uint8_t)(strlen(address) + 3), 1}, 6);
    put_text(o, 0xa1, address);
}

/* Begin a frame whose performative is a list32; returns where it starts. */
static inline size_t frame_begin(struct output *o, uint8_t type, uint8_t descriptor)
{
    uint8_t *p = room(o, 20);
    memset(p, 0, 20);
    p[4] = 2;
    p[5] = type;
    p[9] = 0x53;
    p[10] = descriptor;
    p[11] = 0xd0;
    return (size_t)(p - o->data);
}

static inline void frame_end(struct output *o, size_t start, uint32_t field_count)
{
    uint8_t *p = o->data + start;
    store_u32(p, (uint32_t)(o->end - start));
    store_u32(p + 12, (uint32_t)(o->end - start - 16));
    store_u32(p + 16, field_count);
}

#endif
