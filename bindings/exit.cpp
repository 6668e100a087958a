// Owns the end of static objects: there is none, by Note [Threads at exit] in python.h.
//
// Threads that are in a kernel when the process exits go on with tables that destructors would
// free. The compiler hands every destructor of a static object to __cxa_atexit; calls from this
// library come here, those of others go to the C library. What we have, the system takes back.

extern "C" [[gnu::visibility("hidden")]] int __cxa_atexit(void (*)(void*), void*, void*) noexcept;

extern "C" int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }
