/* Included once for each type: T, LANES elements in a vector V, the intrinsics F(name) of its width, COMPARED, which gives a mask, and the function NAME(wave) of what is within FAR. */

#define INLINE WIDEST static inline __attribute__((always_inline))

/* A vector's elements from `x` on, or `some` of them. */
INLINE void NAME(some)(const T *x, T *y, npy_intp some, int quarters, const Loop *numpy)
{
    const MASK mask = (MASK)((1u << some) - 1);
    V value = F(maskz_loadu)(mask, x);
    V made = NAME(wave)(value, quarters);
    if (quarters == 0) { /* the sign of zeros */
        made = F(mask_mov)(made, COMPARED(value, F(setzero)(), _CMP_EQ_OQ), value);
    }
    F(mask_storeu)(y, mask, made);
    const MASK far = COMPARED(F(abs)(value), F(set1)((T)FAR), _CMP_NLE_UQ);
    if (__builtin_expect(far, 0)) { /* these alone: an element has the same bits whatever its neighbours are */
        T from[LANES], to[LANES];
        npy_intp count = LANES, step[2] = {sizeof(T), sizeof(T)};
        char *args[2] = {(char *)from, (char *)to};
        F(storeu)(from, value);
        numpy->call(args, &count, step, numpy->data);
        F(mask_storeu)(y, far, F(loadu)(to));
    }
}

/* Elements that do not lie side by side go through a buffer, so that they get the same bits. */
INLINE void NAME(run)(char **args, npy_intp left, const npy_intp *steps, int quarters, const Loop *numpy)
{
    const npy_intp dense = sizeof(T);
    const char *x = args[0];
    char *y = args[1];
    for (; left > 0; left -= LANES, x += LANES * steps[0], y += LANES * steps[1]) {
        const npy_intp some = left < LANES ? left : LANES;
        if (steps[0] == dense && steps[1] == dense) {
            NAME(some)((const T *)x, (T *)y, some, quarters, numpy);
            continue;
        }
        T from[LANES], to[LANES];
        for (npy_intp i = 0; i < some; i++) {
            memcpy(&from[i], x + i * steps[0], sizeof(T));
        }
        NAME(some)(from, to, some, quarters, numpy);
        for (npy_intp i = 0; i < some; i++) {
            memcpy(y + i * steps[1], &to[i], sizeof(T));
        }
    }
}

#define LOOP(name, quarters)                                                                                                               \
    static Loop NAME(numpy_##name);                                                                                                        \
    WIDEST static void NAME(name##_loop)(char **args, const npy_intp *dims, const npy_intp *steps, void *data)                             \
    {                                                                                                                                      \
        const Loop *numpy = data;                                                                                                          \
        if (S.vectors < 2) {                                                                                                               \
            numpy->call(args, dims, steps, numpy->data);                                                                                   \
            return;                                                                                                                        \
        }                                                                                                                                  \
        NAME(run)(args, dims[0], steps, quarters, numpy);                                                                                  \
    }

LOOP(sin, 0)
LOOP(cos, 1)

static Loop NAME(wave_loop)(const char *ufunc, Loop numpy)
{
    if (strcmp(ufunc, "sin") == 0) {
        NAME(numpy_sin) = numpy;
        return (Loop){NAME(sin_loop), &NAME(numpy_sin)};
    }
    if (strcmp(ufunc, "cos") == 0) {
        NAME(numpy_cos) = numpy;
        return (Loop){NAME(cos_loop), &NAME(numpy_cos)};
    }
    return numpy;
}

#undef LOOP
#undef INLINE
