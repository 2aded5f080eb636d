/* Includes the file LOOPS for float and for double, in vectors of 512 bits.
 *
 * There NAME(sum) is sum_float or sum_double, T the type, V a vector of LANES elements, MASK what chooses among them, and F(name) the intrinsic of that
 * name.
 */
#define T float
#define V __m512
#define MASK __mmask16
#define LANES 16
#define NAME(name) name##_float
#define F(name) _mm512_##name##_ps
#include LOOPS
#undef T
#undef V
#undef MASK
#undef LANES
#undef NAME
#undef F

#define T double
#define V __m512d
#define MASK __mmask8
#define LANES 8
#define NAME(name) name##_double
#define F(name) _mm512_##name##_pd
#include LOOPS
#undef T
#undef V
#undef MASK
#undef LANES
#undef NAME
#undef F
#undef LOOPS
