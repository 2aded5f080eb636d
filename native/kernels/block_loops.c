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
#include "whole_vectors.h"

/* `operands` are masks, of all and, from bit 8 on, of those that have more than one element; there are not more arguments than fit into registers. */
#define REST(vector)                                                                                                                       \
    static __attribute__((noinline)) void rest_##vector(BlockLoop loop, const void *const *sources, char *target, npy_intp n,               \
                                                        unsigned operands, npy_intp width)                                                 \
    {                                                                                                                                      \
        char room[BLOCK_SOURCES + 1][vector] __attribute__((aligned(vector)));                                                             \
        const void *left[BLOCK_SOURCES];                                                                                                   \
        const size_t bytes = (size_t)(n * width) % vector;                                                                                 \
        const npy_intp from = n * width - (npy_intp)bytes;                                                                                 \
        for (int k = 0; operands >> k & 1; k++) {                                                                                          \
            left[k] = sources[k];                                                                                                          \
            if (operands >> (k + 8) & 1) {                                                                                                 \
                TAKE_REST(vector)(room[k], (const char *)sources[k] + from, bytes);                                                        \
                left[k] = room[k];                                                                                                         \
            }                                                                                                                              \
        }                                                                                                                                  \
        loop(left, room[BLOCK_SOURCES], vector / width);                                                                                   \
        GIVE_REST(vector)(target + from, room[BLOCK_SOURCES], bytes);                                                                      \
    }

REST(16)
#if HAS_WIDE
WIDE REST(32)
WIDEST REST(64)
#endif
#define REST_OF(vector) REST_OF_(vector)
#define REST_OF_(vector) rest_##vector

/* Of each operand: where it is, and its element at i; a number is the same at every i. An operand may be the target itself. */
#define ARRAY(name, at)                                                                                                                    \
    const T *name##s = sources[at];                                                                                                        \
    masks |= 257u << at;
#define ELEMENT(name) T name = name##s[i];
#define NUMBER(name, at)                                                                                                                   \
    T name = *(const T *)sources[at];                                                                                                      \
    masks |= 1u << at;
#define LOOP(name, operands, elements, expression)                                                                                         \
    static TARGET void NAME(name)(const void *const *sources, void *target, npy_intp n)                                                    \
    {                                                                                                                                      \
        T *results = target;                                                                                                               \
        unsigned masks = 0;                                                                                                                \
        const npy_intp whole = n & -(npy_intp)(VECTOR_BYTES / sizeof(T));                                                                  \
        operands INDEPENDENT for (npy_intp i = 0; i < whole; i++)                                                                          \
        {                                                                                                                                  \
            elements results[i] = expression;                                                                                              \
        }                                                                                                                                  \
        if (whole != n) {                                                                                                                  \
            REST_OF(VECTOR_BYTES)(NAME(name), sources, target, n, masks, sizeof(T));                                                       \
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
