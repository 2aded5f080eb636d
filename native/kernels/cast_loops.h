/* Loops from one element type to all: FROM is the type, LOAD(x) the value of an element as something C converts; included for each. */

#define CAST_TO(name, type, value)                                                                                                          \
    static void CAST_NAME(name)(const char *source, npy_intp from_step, char *target, npy_intp to_step, npy_intp n)                       \
    {                                                                                                                                      \
        if (from_step == sizeof(FROM) && to_step == sizeof(type)) {                                                                        \
            const FROM *restrict in = (const FROM *)source;                                                                                \
            type *restrict out = (type *)target;                                                                                           \
            for (npy_intp i = 0; i < n; i++) {                                                                                             \
                FROM x = in[i];                                                                                                            \
                out[i] = value;                                                                                                            \
            }                                                                                                                              \
            return;                                                                                                                        \
        }                                                                                                                                  \
        for (npy_intp i = 0; i < n; i++, source += from_step, target += to_step) {                                                         \
            FROM x = *(const FROM *)source;                                                                                                \
            *(type *)target = value;                                                                                                       \
        }                                                                                                                                  \
    }

CAST_TO(to_bool, npy_bool, IS_TRUE(x))
CAST_TO(to_int8, npy_int8, (npy_int8)LOAD(x))
CAST_TO(to_uint8, npy_uint8, (npy_uint8)LOAD(x))
CAST_TO(to_int16, npy_int16, (npy_int16)LOAD(x))
CAST_TO(to_int32, npy_int32, (npy_int32)LOAD(x))
CAST_TO(to_int64, npy_int64, (npy_int64)LOAD(x))
CAST_TO(to_float32, float, (float)LOAD(x))
CAST_TO(to_float64, double, (double)LOAD(x))
CAST_TO(to_bfloat16, npy_uint16, round_to_bfloat16((float)LOAD(x)))

static const CastLoop CAST_NAME(table)[KINDS] = {
    CAST_NAME(to_bool),  CAST_NAME(to_int8),    CAST_NAME(to_uint8),   CAST_NAME(to_int16),    CAST_NAME(to_int32),
    CAST_NAME(to_int64), CAST_NAME(to_float32), CAST_NAME(to_float64), CAST_NAME(to_bfloat16),
};

#undef CAST_TO
#undef FROM
#undef LOAD
#undef IS_TRUE
#undef CAST_NAME
