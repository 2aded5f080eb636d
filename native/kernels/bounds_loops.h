/* Loops of bounds.c over integers of type T. */

/* Where a bound is NULL every number of the type is within. */
TARGET static void NAME(bound)(const void *from, void *to, npy_intp n, const void *low, const void *high)
{
    const T *x = from, least = low == NULL ? LEAST : *(const T *)low, most = high == NULL ? MOST : *(const T *)high;
    T *out = to;
    for (npy_intp i = 0; i < n; i++) {
        const T raised = x[i] < least ? least : x[i];
        out[i] = raised > most ? most : raised;
    }
}

TARGET static void NAME(sign)(const void *from, void *to, npy_intp n, const void *low, const void *high)
{
    (void)low;
    (void)high;
    const T *x = from;
    T *out = to;
    for (npy_intp i = 0; i < n; i++) {
        out[i] = (T)((x[i] > 0) - (x[i] < 0));
    }
}
