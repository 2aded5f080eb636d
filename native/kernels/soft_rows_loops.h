/* Included by soft_rows.c for each type, as wide_variants.h says. The last vector of a row has a mask, and its other elements are -inf. */

#define SUMMED 64 /* vectors that are added up before the sum is widened */
#define TAIL(n) ((MASK)(((npy_uint32)2 << (((n) - 1) % LANES)) - 1))
#define LEAST F(set1)((T)-INFINITY)

WIDEST static inline T NAME(greatest)(const T *x, npy_intp whole, MASK last)
{
    V a = F(mask_loadu)(LEAST, last, x + whole), b = LEAST;
    npy_intp i = 0;
    for (; i + 2 * LANES <= whole; i += 2 * LANES) {
        a = F(max)(a, F(loadu)(x + i));
        b = F(max)(b, F(loadu)(x + i + LANES));
    }
    if (i < whole) {
        b = F(max)(b, F(loadu)(x + i));
    }
    return F(reduce_max)(F(max)(a, b));
}

/* The sum of the exponentials, which are written down if there is a place for them. */
WIDEST static inline double NAME(exponentials)(const T *x, V best, T *out, npy_intp whole, MASK last)
{
    V sum = NAME(exponential)(F(sub)(F(mask_loadu)(LEAST, last, x + whole), best));
    if (out != NULL) {
        F(mask_storeu)(out + whole, last, sum);
    }
    double total = 0;
    for (npy_intp i = 0; i < whole;) {
        const npy_intp end = whole - i > SUMMED * LANES ? i + SUMMED * LANES : whole;
        for (; i < end; i += LANES) {
            const V e = NAME(exponential)(F(sub)(F(loadu)(x + i), best));
            if (out != NULL) {
                F(storeu)(out + i, e);
            }
            sum = F(add)(sum, e);
        }
        if (i < whole) {
            total += F(reduce_add)(sum);
            sum = F(setzero)();
        }
    }
    return total + F(reduce_add)(sum);
}

WIDEST static void NAME(soft_rows)(const T *x, T *out, npy_intp rows, npy_intp n, int logarithm)
{
    const npy_intp whole = (n - 1) / LANES * LANES;
    const MASK last = TAIL(n);
    for (npy_intp r = 0; r < rows; r++, x += n, out += n) {
        const V best = F(set1)(NAME(greatest)(x, whole, last));
        const double total = NAME(exponentials)(x, best, logarithm ? NULL : out, whole, last);
        if (logarithm) {
            const V shift = F(set1)(NAME(logarithm)(total));
            for (npy_intp i = 0; i < whole; i += LANES) {
                F(storeu)(out + i, F(sub)(F(sub)(F(loadu)(x + i), best), shift));
            }
            F(mask_storeu)(out + whole, last, F(sub)(F(sub)(F(maskz_loadu)(last, x + whole), best), shift));
        }
        else {
            const V factor = F(set1)((T)(1 / total));
            for (npy_intp i = 0; i < whole; i += LANES) {
                F(storeu)(out + i, F(mul)(F(loadu)(out + i), factor));
            }
            F(mask_storeu)(out + whole, last, F(mul)(F(maskz_loadu)(last, out + whole), factor));
        }
    }
}

/* Where the greatest is infinite nothing is taken away from it. */
WIDEST static void NAME(log_sums)(const T *x, npy_intp step, T *out, npy_intp rows, npy_intp n)
{
    const npy_intp whole = (n - 1) / LANES * LANES;
    const MASK last = TAIL(n);
    for (npy_intp r = 0; r < rows; r++, x += step) {
        const T greatest = NAME(greatest)(x, whole, last), best = isinf(greatest) ? 0 : greatest;
        out[r] = best + NAME(logarithm)(NAME(exponentials)(x, F(set1)(best), NULL, whole, last));
    }
}

/* The sum of a row, or of its products with another. */
WIDEST static inline double NAME(added)(const T *x, const T *y, npy_intp whole, MASK last)
{
    V sum = F(maskz_loadu)(last, x + whole);
    if (y != NULL) {
        sum = F(mul)(sum, F(maskz_loadu)(last, y + whole));
    }
    double total = 0;
    for (npy_intp i = 0; i < whole;) {
        const npy_intp end = whole - i > SUMMED * LANES ? i + SUMMED * LANES : whole;
        for (; i < end; i += LANES) {
            sum = y != NULL ? F(fmadd)(F(loadu)(x + i), F(loadu)(y + i), sum) : F(add)(sum, F(loadu)(x + i));
        }
        if (i < whole) {
            total += F(reduce_add)(sum);
            sum = F(setzero)();
        }
    }
    return total + F(reduce_add)(sum);
}

WIDEST static inline V NAME(slope)(V grad, V y, V total, int logarithm)
{
    return logarithm ? F(fnmadd)(NAME(exponential)(y), total, grad) : F(mul)(F(sub)(grad, total), y);
}

WIDEST static void NAME(soft_rows_backward)(const T *grad, const T *y, T *out, npy_intp rows, npy_intp n, int logarithm)
{
    const npy_intp whole = (n - 1) / LANES * LANES;
    const MASK last = TAIL(n);
    for (npy_intp r = 0; r < rows; r++, grad += n, y += n, out += n) {
        const V total = F(set1)((T)NAME(added)(grad, logarithm ? NULL : y, whole, last));
        for (npy_intp i = 0; i < whole; i += LANES) {
            F(storeu)(out + i, NAME(slope)(F(loadu)(grad + i), F(loadu)(y + i), total, logarithm));
        }
        F(mask_storeu)(out + whole, last, NAME(slope)(F(maskz_loadu)(last, grad + whole), F(maskz_loadu)(last, y + whole), total, logarithm));
    }
}

#undef SUMMED
#undef TAIL
#undef LEAST
