/* Loops of bounds.c over integers of type T. */

TARGET static void NAME(bound)(const void *from, void *to, npy_intp n, npy_int64 low, npy_int64 high)
{
    const T *x = from, least = (T)low, most = (T)high;
    T *out = to;
    for (npy_intp i = 0; i < n; i++) {
        const T raised = x[i] < least ? least : x[i];
        out[i] = raised > most ? most : raised;
    }
}

TARGET static void NAME(sign)(const void *from, void *to, npy_intp n, npy_int64 low, npy_int64 high)
{
    (void)low;
    (void)high;
    const T *x = from;
    T *out = to;
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (T)((x[i] > 0) - (x[i] < 0));
    }
}
