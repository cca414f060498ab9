# The compiled twins of serial.py: unsigned fields wrap by themselves.


cdef inline unsigned int add(unsigned int number, long long count) noexcept:
    return <unsigned int>(number + count)


cdef inline unsigned int ahead(unsigned int start, unsigned int end) noexcept:
    return end - start


cdef inline long long distance(unsigned int start, unsigned int end) noexcept:
    return <int>(end - start)
