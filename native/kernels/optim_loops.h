/* Steps of optimizers, in one pass over the memory; included for each type and processor. */

static TARGET void NAME(adam_each)(void *parameter, const void *gradient, void *average, void *squares, npy_intp n, double beta1,
                                   double beta2, double eps, double step, double root, double shrink, double decay)
{
    T *p = parameter, *m = average, *v = squares;
    const T *grad = gradient;
    const T keep = (T)beta2, fresh1 = (T)(1 - beta1), fresh2 = (T)(1 - beta2), small = (T)eps, size = (T)step, by = (T)root;
    const T factor = (T)shrink, added = (T)decay;
    for (npy_intp i = 0; i < n; i++) {
        T old = p[i], g = added == 0 ? grad[i] : grad[i] + added * old;
        T mean = m[i] + fresh1 * (g - m[i]);
        T square = v[i] * keep + fresh2 * g * g;
        m[i] = mean;
        v[i] = square;
        p[i] = old * factor - size * (mean / (NAME(root)(square) / by + small));
    }
}

/* `memory` may be NULL: no momentum. */
static TARGET void NAME(sgd_each)(void *parameter, const void *gradient, void *memory, npy_intp n, double rate, double momentum,
                                  double fresh, double decay, int nesterov)
{
    T *p = parameter, *buffer = memory;
    const T *grad = gradient;
    const T size = (T)rate, keep = (T)momentum, share = (T)fresh, added = (T)decay;
    if (buffer == NULL) {
        for (npy_intp i = 0; i < n; i++) {
            p[i] -= size * (added == 0 ? grad[i] : grad[i] + added * p[i]);
        }
    }
    else {
        for (npy_intp i = 0; i < n; i++) {
            T g = added == 0 ? grad[i] : grad[i] + added * p[i];
            T b = buffer[i] * keep + share * g;
            buffer[i] = b;
            p[i] -= size * (nesterov ? g + keep * b : b);
        }
    }
}
