/* Includes the file LOOPS once for each integer type, plain and for AVX2; like variants.h, with INTEGER defined. */
#ifndef INLINED
#define INLINED static inline __attribute__((always_inline)) TARGET
#endif

#define INTEGER 1

#define NAME(name) name##_int64_plain
#define T npy_int64
#define LEAST NPY_MIN_INT64
#define MOST NPY_MAX_INT64
#define TARGET PLAIN
#include LOOPS
#undef NAME
#define NAME(name) name##_int32_plain
#undef T
#undef LEAST
#undef MOST
#define T npy_int32
#define LEAST NPY_MIN_INT32
#define MOST NPY_MAX_INT32
#include LOOPS
#undef NAME
#define NAME(name) name##_int16_plain
#undef T
#undef LEAST
#undef MOST
#define T npy_int16
#define LEAST NPY_MIN_INT16
#define MOST NPY_MAX_INT16
#include LOOPS
#undef NAME
#define NAME(name) name##_int8_plain
#undef T
#undef LEAST
#undef MOST
#define T npy_int8
#define LEAST NPY_MIN_INT8
#define MOST NPY_MAX_INT8
#include LOOPS
#undef NAME
#define NAME(name) name##_uint8_plain
#undef T
#undef LEAST
#undef MOST
#define T npy_uint8
#define LEAST 0
#define MOST NPY_MAX_UINT8
#include LOOPS
#undef TARGET

#if HAS_WIDE
#define TARGET WIDE
#undef NAME
#define NAME(name) name##_uint8_wide
#include LOOPS
#undef NAME
#define NAME(name) name##_int8_wide
#undef T
#undef LEAST
#undef MOST
#define T npy_int8
#define LEAST NPY_MIN_INT8
#define MOST NPY_MAX_INT8
#include LOOPS
#undef NAME
#define NAME(name) name##_int16_wide
#undef T
#undef LEAST
#undef MOST
#define T npy_int16
#define LEAST NPY_MIN_INT16
#define MOST NPY_MAX_INT16
#include LOOPS
#undef NAME
#define NAME(name) name##_int32_wide
#undef T
#undef LEAST
#undef MOST
#define T npy_int32
#define LEAST NPY_MIN_INT32
#define MOST NPY_MAX_INT32
#include LOOPS
#undef NAME
#define NAME(name) name##_int64_wide
#undef T
#undef LEAST
#undef MOST
#define T npy_int64
#define LEAST NPY_MIN_INT64
#define MOST NPY_MAX_INT64
#include LOOPS
#undef TARGET
#endif

#undef NAME
#undef T
#undef LEAST
#undef MOST
#undef INTEGER
#undef LOOPS

/* Rows of a table of kinds: what `name` is for the type and each set of vector instructions. */
#if HAS_WIDE
#define FLOAT_ROW(name, type) {name##_##type##_plain, name##_##type##_wide, name##_##type##_widest}
#define INTEGER_ROW(name, type) {name##_##type##_plain, name##_##type##_wide, name##_##type##_wide}
#else
#define FLOAT_ROW(name, type) {name##_##type##_plain, name##_##type##_plain, name##_##type##_plain}
#define INTEGER_ROW(name, type) FLOAT_ROW(name, type)
#endif
#define ALL_KINDS(name)                                                                                                                    \
    {                                                                                                                                      \
        FLOAT_ROW(name, float), FLOAT_ROW(name, double), INTEGER_ROW(name, int64), INTEGER_ROW(name, int32), INTEGER_ROW(name, int16),     \
            INTEGER_ROW(name, int8), INTEGER_ROW(name, uint8), INTEGER_ROW(name, uint8)                                                    \
    }
#define FLOAT_KINDS(name)                                                                                                                  \
    {                                                                                                                                      \
        FLOAT_ROW(name, float), FLOAT_ROW(name, double)                                                                                    \
    }
