/* Adding rows to rows; included for each type and processor. */

static TARGET void NAME(add_each_row)(void *output, const npy_intp *rows, const void *values, npy_intp count, npy_intp n)
{
    const T *value = values;
    for (npy_intp i = 0; i < count; i++, value += n) {
        T *target = (T *)output + rows[i] * n;
        for (npy_intp k = 0; k < n; k++) {
            target[k] += value[k];
        }
    }
}
