/* Includes the file LOOPS once for each type and processor.
 *
 * There NAME(sum) is sum_float_plain, sum_double_wide and so on, T the type, IS_DOUBLE tells the types apart, TARGET is what a function
 * needs before its result type, VECTOR_BYTES the size of the processor's vectors, and FUSED whether it multiplies and adds in one operation.
 * CHOOSE(sum, width, ...) calls the function for an item size and this processor.
 */
/* For functions of one element: a call in a loop would keep it from being vectorised, and compilers tire of inlining. */
#ifndef INLINED
#define INLINED static inline __attribute__((always_inline)) TARGET
#endif

#define T float
#define IS_DOUBLE 0

#define NAME(name) name##_float_plain
#define TARGET PLAIN
#define VECTOR_BYTES 16
#define FUSED 0
#include LOOPS
#undef NAME
#undef TARGET
#undef VECTOR_BYTES
#undef FUSED

#if HAS_WIDE
#define NAME(name) name##_float_wide
#define TARGET WIDE
#define VECTOR_BYTES 32
#define FUSED 1
#include LOOPS
#undef NAME
#undef TARGET
#undef VECTOR_BYTES
#undef FUSED

#define NAME(name) name##_float_widest
#define TARGET WIDEST
#define VECTOR_BYTES 64
#define FUSED 1
#include LOOPS
#undef NAME
#undef TARGET
#undef VECTOR_BYTES
#undef FUSED
#endif

#undef T
#undef IS_DOUBLE
#define T double
#define IS_DOUBLE 1

#define NAME(name) name##_double_plain
#define TARGET PLAIN
#define VECTOR_BYTES 16
#define FUSED 0
#include LOOPS
#undef NAME
#undef TARGET
#undef VECTOR_BYTES
#undef FUSED

#if HAS_WIDE
#define NAME(name) name##_double_wide
#define TARGET WIDE
#define VECTOR_BYTES 32
#define FUSED 1
#include LOOPS
#undef NAME
#undef TARGET
#undef VECTOR_BYTES
#undef FUSED

#define NAME(name) name##_double_widest
#define TARGET WIDEST
#define VECTOR_BYTES 64
#define FUSED 1
#include LOOPS
#undef NAME
#undef TARGET
#undef VECTOR_BYTES
#undef FUSED
#endif

#undef T
#undef IS_DOUBLE
#undef LOOPS

#ifndef CHOOSE
#if HAS_WIDE
#define CHOOSE32(name) (S.vectors == 2 ? name##_float_widest : S.vectors == 1 ? name##_float_wide : name##_float_plain)
#define CHOOSE64(name) (S.vectors == 2 ? name##_double_widest : S.vectors == 1 ? name##_double_wide : name##_double_plain)
#else
#define CHOOSE32(name) name##_float_plain
#define CHOOSE64(name) name##_double_plain
#endif
/* The arguments are pointers to void that each variant takes for its own type, and numbers. */
#define CHOOSE(name, width, ...)                                                                                                          \
    do {                                                                                                                                   \
        if ((width) == 8) {                                                                                                                \
            CHOOSE64(name)(__VA_ARGS__);                                                                                                   \
        }                                                                                                                                  \
        else {                                                                                                                             \
            CHOOSE32(name)(__VA_ARGS__);                                                                                                   \
        }                                                                                                                                  \
    } while (0)
/* The same of loops that the widest vectors have in another form. */
#if HAS_WIDE
#define CHOOSE_NARROWER(name, width, ...)                                                                                                 \
    (S.vectors ? ((width) == 8 ? name##_double_wide : name##_float_wide) : (width) == 8 ? name##_double_plain : name##_float_plain)(__VA_ARGS__)
#else
#define CHOOSE_NARROWER(name, width, ...) ((width) == 8 ? name##_double_plain : name##_float_plain)(__VA_ARGS__)
#endif
#endif
