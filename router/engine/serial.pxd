cimport cython

cdef long long MASK
cdef long long HALF
cdef long long WHOLE

@cython.locals(distance=cython.longlong)
cpdef long long serial_distance(long long start, long long end) noexcept

cpdef unsigned int serial_add(long long number, long long count) noexcept

cpdef long long serial_ahead(long long start, long long end) noexcept
