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

/* output[owner[i]] += factor[i] * table[rows[i]]; no factors for NULL. */
static TARGET void NAME(sum_each_row)(void *output, const void *table, const npy_intp *rows, const npy_intp *owner, const void *factors,
                                      npy_intp count, npy_intp n)
{
    for (npy_intp i = 0; i < count; i++) {
        const T *restrict row = (const T *)table + rows[i] * n;
        T *restrict target = (T *)output + owner[i] * n;
        if (factors == NULL) {
            for (npy_intp k = 0; k < n; k++) {
                target[k] += row[k];
            }
        }
        else {
            const T factor = ((const T *)factors)[i];
            for (npy_intp k = 0; k < n; k++) {
                target[k] += factor * row[k];
            }
        }
    }
}
