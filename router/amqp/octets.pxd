# The compiled twins of octets.py: inline, bounds checked before memory is touched.
# Everything below router/ that reads or writes raw memory does it through these.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy, memmove


cdef inline int outside(Py_ssize_t size, Py_ssize_t at, Py_ssize_t count) except -1:
    if at < 0 or count < 0 or at > size or count > size - at:
        raise IndexError(f"{count} octets at {at} are outside of {size}")
    return 0


cdef inline unsigned int read_u16(const unsigned char[::1] source, Py_ssize_t at) except? 65535:
    outside(source.shape[0], at, 2)
    cdef const unsigned char* p = &source[at]
    return (<unsigned int>p[0] << 8) | p[1]


cdef inline unsigned int read_u32(const unsigned char[::1] source, Py_ssize_t at) except? 4294967295:
    outside(source.shape[0], at, 4)
    cdef const unsigned char* p = &source[at]
    return (<unsigned int>p[0] << 24) | (<unsigned int>p[1] << 16) | (<unsigned int>p[2] << 8) | p[3]


cdef inline unsigned long long read_u64(const unsigned char[::1] source, Py_ssize_t at) except? 18446744073709551615ULL:
    outside(source.shape[0], at, 8)
    cdef const unsigned char* p = &source[at]
    return (
        (<unsigned long long>p[0] << 56) | (<unsigned long long>p[1] << 48)
        | (<unsigned long long>p[2] << 40) | (<unsigned long long>p[3] << 32)
        | (<unsigned long long>p[4] << 24) | (<unsigned long long>p[5] << 16)
        | (<unsigned long long>p[6] << 8) | p[7]
    )


cdef inline unsigned long long mirror_u64(unsigned long long value) noexcept:
    value = (value & 0x00FF00FF00FF00FFULL) << 8 | (value >> 8 & 0x00FF00FF00FF00FFULL)
    value = (value & 0x0000FFFF0000FFFFULL) << 16 | (value >> 16 & 0x0000FFFF0000FFFFULL)
    return value << 32 | value >> 32


cdef inline int write_u16(unsigned char[::1] target, Py_ssize_t at, unsigned int value) except -1:
    outside(target.shape[0], at, 2)
    cdef unsigned char* p = &target[at]
    p[0] = <unsigned char>(value >> 8)
    p[1] = <unsigned char>value
    return 0


cdef inline int write_u32(unsigned char[::1] target, Py_ssize_t at, unsigned int value) except -1:
    outside(target.shape[0], at, 4)
    cdef unsigned char* p = &target[at]
    p[0] = <unsigned char>(value >> 24)
    p[1] = <unsigned char>(value >> 16)
    p[2] = <unsigned char>(value >> 8)
    p[3] = <unsigned char>value
    return 0


cdef inline int write_u64(unsigned char[::1] target, Py_ssize_t at, unsigned long long value) except -1:
    outside(target.shape[0], at, 8)
    cdef unsigned char* p = &target[at]
    p[0] = <unsigned char>(value >> 56)
    p[1] = <unsigned char>(value >> 48)
    p[2] = <unsigned char>(value >> 40)
    p[3] = <unsigned char>(value >> 32)
    p[4] = <unsigned char>(value >> 24)
    p[5] = <unsigned char>(value >> 16)
    p[6] = <unsigned char>(value >> 8)
    p[7] = <unsigned char>value
    return 0


cdef inline int copy(unsigned char[::1] target, Py_ssize_t at, const unsigned char[::1] source, Py_ssize_t start, Py_ssize_t count) except -1:
    outside(target.shape[0], at, count)
    outside(source.shape[0], start, count)
    if count:
        memcpy(&target[at], &source[start], count)
    return 0


cdef inline bytes take_bytes(const unsigned char[::1] source, Py_ssize_t start, Py_ssize_t count):
    outside(source.shape[0], start, count)
    if count == 0:
        return b""
    return PyBytes_FromStringAndSize(<const char*>&source[start], count)


cdef inline int put_bytes(unsigned char[::1] target, Py_ssize_t at, bytes source) except -1:
    if source is None:
        raise TypeError("octets are wanted, not None")
    cdef Py_ssize_t count = PyBytes_GET_SIZE(source)
    outside(target.shape[0], at, count)
    if count:
        memcpy(&target[at], PyBytes_AS_STRING(source), count)
    return 0
