/* Includes the file LOOPS once for each type and processor: NAME(sum) is sum_float_plain, sum_double_plain, sum_float_wide or
 * sum_double_wide, T the type, TARGET what a function needs before its result type, and IS_DOUBLE tells the types apart.
 *
 * CHOOSE(sum, width) is the function for a type and this processor.
 */
#define NAME(name) name##_float_plain
#define T float
#define IS_DOUBLE 0
#define TARGET
#include LOOPS
#undef NAME
#undef T
#undef IS_DOUBLE

#define NAME(name) name##_double_plain
#define T double
#define IS_DOUBLE 1
#include LOOPS
#undef NAME
#undef T
#undef IS_DOUBLE
#undef TARGET

#if HAS_WIDE
#define TARGET WIDE
#define NAME(name) name##_float_wide
#define T float
#define IS_DOUBLE 0
#include LOOPS
#undef NAME
#undef T
#undef IS_DOUBLE

#define NAME(name) name##_double_wide
#define T double
#define IS_DOUBLE 1
#include LOOPS
#undef NAME
#undef T
#undef IS_DOUBLE
#undef TARGET
#endif

#undef LOOPS

#ifndef CHOOSE
#if HAS_WIDE
#define CHOOSE32(name) (S.wide ? name##_float_wide : name##_float_plain)
#define CHOOSE64(name) (S.wide ? name##_double_wide : name##_double_plain)
#else
#define CHOOSE32(name) name##_float_plain
#define CHOOSE64(name) name##_double_plain
#endif
/* Calls the variant for an item size; the arguments are pointers that each variant casts by itself. */
#define CHOOSE(name, width, ...)                                                                                                          \
    do {                                                                                                                                   \
        if ((width) == 8) {                                                                                                                \
            CHOOSE64(name)(__VA_ARGS__);                                                                                                   \
        }                                                                                                                                  \
        else {                                                                                                                             \
            CHOOSE32(name)(__VA_ARGS__);                                                                                                   \
        }                                                                                                                                  \
    } while (0)
#endif
