/* The loops of blocks, from the schema's expressions.
 *
 * Note [The same bits]. A block and an eager call, the head and the tail of an array, a number and an array that holds it give the same bits: this
 * file is compiled without contraction (see setup.py), and each function of its headers is a sequence of IEEE operations. What compilers may
 * then choose is the sign and the payload of NaNs alone.
 */
#include <float.h>
#include <math.h>

#include "blocks.h"
#include "elementary.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Of each operand: where it is, and its element at i; a number is the same at every i. An operand may be the target itself. */
#define ARRAY(name, at) const T *name##s = sources[at];
#define ELEMENT(name) T name = name##s[i];
#define NUMBER(name, at) T name = *(const T *)sources[at];
#define LOOP(name, operands, elements, expression)                                                                                         \
    static TARGET void NAME(name)(const void *const *sources, void *target, npy_intp n)                                                    \
    {                                                                                                                                      \
        T *results = target;                                                                                                               \
        operands INDEPENDENT for (npy_intp i = 0; i < n; i++)                                                                              \
        {                                                                                                                                  \
            elements results[i] = expression;                                                                                              \
        }                                                                                                                                  \
    }

#define LOOPS "block_loops.h"
#include "variants.h"

#if HAS_WIDE
#define VARIANTS(name)                                                                                                                     \
    {                                                                                                                                      \
        {name##_float_plain, name##_float_wide, name##_float_widest}, {name##_double_plain, name##_double_wide, name##_double_widest}      \
    }
#else
#define VARIANTS(name)                                                                                                                     \
    {                                                                                                                                      \
        {name##_float_plain}, {name##_double_plain}                                                                                        \
    }
#endif
#define PATTERN(name, numbers) {numbers, VARIANTS(name)}
/* The same, of a function of which elementary.c has loops for the widest vectors. */
#if HAS_WIDE
#define BY_HAND_OR(name, numbers, of_float, of_double)                                                                                     \
    {                                                                                                                                      \
        numbers,                                                                                                                           \
        {                                                                                                                                  \
            {name##_float_plain, name##_float_wide, of_float}, {name##_double_plain, name##_double_wide, of_double}                        \
        }                                                                                                                                  \
    }
#else
#define BY_HAND_OR(name, numbers, of_float, of_double) PATTERN(name, numbers)
#endif
#define ROW(name, kinds, to_bool, ...) {#name, kinds, to_bool, {__VA_ARGS__}},

const BlockEntry block_entries[] = {
#include "block_table.h"
};
const int block_count = sizeof(block_entries) / sizeof(block_entries[0]);

BlockLoop block_loop(int opcode, int width, unsigned numbers)
{
    const BlockPattern *pattern = block_entries[opcode].patterns;
    numbers |= pattern->numbers;
    for (int k = 0; k < BLOCK_PATTERNS; k++, pattern++) {
        if (pattern->numbers == numbers) {
            return pattern->loops[width == 8][S.vectors];
        }
    }
    return NULL;
}
