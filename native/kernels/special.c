/* Special functions of float32 and float64, element by element in double: gamma functions by the C library, the others by series. Programs call them on few elements, where what counts is that no array is made on the way.
 */
#include "blocks.h"
#include "kinds.h"
#include <math.h>

#define PI 3.14159265358979323846

/* --- gamma functions */

static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* psi(x) = psi(1 - x) - pi / tan(pi x) takes x below 1/2 up, psi(x) = psi(x + 1) - 1 / x to where the asymptotic series holds (Abramowitz and
 * Stegun, Handbook of Mathematical Functions, 6.3). NaN at negative integers, -inf at 0, inf at -0.
 */
static double digamma(double x)
{
    double sum = 0;
    if (isinf(x)) {
        return x > 0 ? x : NPY_NAN;
    }
    if (x == 0) {
        return copysign(NPY_INFINITY, -x);
    }
    if (x < 0.5) {
        double fraction = x - trunc(x);
        if (fraction == 0) {
            return NPY_NAN;
        }
        sum = -PI / tan(PI * fraction);
        x = 1 - x;
    }
    for (; x < 10; x++) {
        sum -= 1 / x;
    }
    double i = 1 / (x * x);
    double series = i * (1. / 12 - i * (1. / 120 - i * (1. / 252 - i * (1. / 240 - i * (1. / 132 - i * (691. / 32760 - i / 12))))));
    return log(x) - 0.5 / x - series + sum;
}

/* --- Hurwitz's zeta function */

/* For s > 1 by Euler and Maclaurin's sum, which starts beyond the poles: every term below q = 0 is added one by one. */
static double hurwitz_zeta(double s, double q)
{
    static const double tail[] = {12., /* (2k)! / B(2k) */
                                  -720.,
                                  30240.,
                                  -1209600.,
                                  47900160.,
                                  -1307674368000. / 691,
                                  74724249600.,
                                  -10670622842880000. / 3617,
                                  5109094217170944000. / 43867,
                                  -802857662698291200000. / 174611};
    if (!(s > 1)) {
        return s == 1 ? NPY_INFINITY : NPY_NAN;
    }
    if (q <= 0 && q == floor(q)) {
        return NPY_INFINITY;
    }
    if ((q <= 0 && s != floor(s)) || isnan(q) || isinf(q)) {
        return q > 0 && isinf(q) ? 0 : NPY_NAN;
    }
    double sum = 0, a = q;
    int steps = q < -188 ? 200 : q < 0 ? 12 - (int)q : 12;
    for (int i = 0; i < steps; i++) {
        sum += pow(a, -s);
        a += 1;
    }
    double power = pow(a, -s), factor = s;
    sum += power * a / (s - 1) + 0.5 * power;
    power /= a;
    for (int k = 0; k < (int)(sizeof(tail) / sizeof(tail[0])); k++) {
        sum += factor * power / tail[k];
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2);
        power /= a * a;
    }
    return sum;
}

/* --- modified Bessel functions of orders 0 and 1 */

/* I_n(x) exp(-|x|) for x of at least 0. Near zero the power series (9.6.10), whose terms are all positive; far from it the asymptotic one (9.7.1). */
static double scaled_bessel_i(int order, double x)
{
    const double mu = 4. * order * order;
    double sum = 1, term = 1;
    if (x < 25) {
        double quarter = 0.25 * x * x;
        for (int k = 1; term > sum * 1e-17; k++) {
            term *= quarter / ((double)k * (k + order));
            sum += term;
        }
        return (order ? 0.5 * x : 1) * sum * exp(-x);
    }
    for (int k = 1; k < 30 && fabs(term) > 1e-17; k++) {
        double odd = 2 * k - 1;
        term *= (odd * odd - mu) / (8 * k * x);
        sum += term;
    }
    return isinf(x) ? 0 : sum / sqrt(2 * PI * x);
}

static double bessel_i0e(double x)
{
    return scaled_bessel_i(0, fabs(x));
}

static double bessel_i1e(double x)
{
    return copysign(scaled_bessel_i(1, fabs(x)), x);
}

/* In two factors, since exp(x) alone overflows before the product does; NaN at infinities, as PyTorch has it. */
static double unscaled(double scaled, double x)
{
    double half = exp(0.5 * fabs(x));
    return isinf(x) ? NPY_NAN : scaled * half * half;
}

static double bessel_i0(double x)
{
    return isnan(x) ? x : unscaled(bessel_i0e(x), x);
}

static double bessel_i1(double x)
{
    return isnan(x) ? x : unscaled(bessel_i1e(x), x);
}

/* --- the others */

/* Each element in the array's own precision, as PyTorch rounds pi x. */
static double sinc_of_double(double x)
{
    double y = PI * x;
    return x == 0 ? 1 : sin(y) / y;
}

static double sinc_of_float(double x)
{
    float y = (float)PI * (float)x;
    return x == 0 ? 1 : sinf(y) / y;
}

typedef double (*Function)(double);

/* self, other, out: arrays of one shape */
static PyObject *zeta_kernel(PyObject *const *args)
{
    int kind = kind_of(args[0]);
    PyArrayObject *s = (PyArrayObject *)args[0], *q = (PyArrayObject *)args[1];
    if (!is_float_kind(kind) || kind_of(args[1]) != kind || args[2] != Py_None || !is_contiguous(s) || !is_contiguous(q) || !PyArray_SAMESHAPE(s, q)) {
        return NULL;
    }
    PyObject *made = new_like(s);
    for (npy_intp i = 0; made != NULL && i < PyArray_SIZE(s); i++) {
        if (kind == KIND_FLOAT) {
            float *to = PyArray_DATA((PyArrayObject *)made);
            to[i] = (float)hurwitz_zeta(((const float *)PyArray_DATA(s))[i], ((const float *)PyArray_DATA(q))[i]);
        }
        else {
            double *to = PyArray_DATA((PyArrayObject *)made);
            to[i] = hurwitz_zeta(((const double *)PyArray_DATA(s))[i], ((const double *)PyArray_DATA(q))[i]);
        }
    }
    return made;
}

/* n, self, out: (-1)^(n+1) n! zeta(n + 1, x); digamma for n of 0. */
static PyObject *polygamma_kernel(PyObject *const *args)
{
    Py_ssize_t n;
    int kind = kind_of(args[1]);
    PyArrayObject *x = (PyArrayObject *)args[1];
    if (!as_index(args[0], &n) || n < 1 || n > 100 || !is_float_kind(kind) || args[2] != Py_None || !is_contiguous(x)) {
        return NULL;
    }
    double factor = n % 2 ? 1 : -1;
    for (Py_ssize_t k = 2; k <= n; k++) {
        factor *= (double)k;
    }
    PyObject *made = new_like(x);
    for (npy_intp i = 0; made != NULL && i < PyArray_SIZE(x); i++) {
        if (kind == KIND_FLOAT) {
            ((float *)PyArray_DATA((PyArrayObject *)made))[i] = (float)(hurwitz_zeta((double)n + 1, ((const float *)PyArray_DATA(x))[i]) * factor);
        }
        else {
            ((double *)PyArray_DATA((PyArrayObject *)made))[i] = hurwitz_zeta((double)n + 1, ((const double *)PyArray_DATA(x))[i]) * factor;
        }
    }
    return made;
}

/* The function of every element, in `given` or, when that is NULL or None, in a new array. */
static PyObject *each(PyObject *x_object, PyObject *given, Function of_float, Function of_double)
{
    int kind = kind_of(x_object), fresh = given == NULL || given == Py_None;
    if (!is_float_kind(kind)) {
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)x_object;
    PyArrayObject *target = fresh ? NULL : (PyArrayObject *)given;
    if (!fresh && (kind_of(given) != kind || !PyArray_ISWRITEABLE(target) || !PyArray_SAMESHAPE(target, x))) {
        return NULL;
    }
    const int alike = !fresh && same_layout(target, x), straight = alike || (!fresh && is_contiguous(target));
    PyArrayObject *source = alike ? (PyArrayObject *)Py_NewRef((PyObject *)x) : contiguous_of(x);
    PyObject *out = source == NULL ? NULL : straight ? Py_NewRef(given) : new_like(source);
    if (out != NULL) {
        const npy_intp n = PyArray_SIZE(x);
        const void *from = PyArray_DATA(source);
        void *to = PyArray_DATA((PyArrayObject *)out);
        PyThreadState *thread = n >= RELEASE_GIL / 16 ? PyEval_SaveThread() : NULL;
        for (npy_intp i = 0; kind == KIND_FLOAT && i < n; i++) {
            ((float *)to)[i] = (float)of_float(((const float *)from)[i]);
        }
        for (npy_intp i = 0; kind == KIND_DOUBLE && i < n; i++) {
            ((double *)to)[i] = of_double(((const double *)from)[i]);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(source);
    if (out != NULL && !fresh && !straight) {
        const int failed = PyArray_CopyInto(target, (PyArrayObject *)out) < 0;
        Py_SETREF(out, failed ? NULL : Py_NewRef(given));
    }
    return out;
}

/* Two arguments: the array, and the one for the result or None. */
#define INTO(name, of_float, of_double)                                                                                                    \
    static PyObject *name##_kernel(PyObject *const *args)                                                                                  \
    {                                                                                                                                      \
        return each(args[0], args[1], of_float, of_double);                                                                                \
    }

#define UNARY(name, function)                                                                                                              \
    static PyObject *name##_kernel(PyObject *const *args)                                                                                  \
    {                                                                                                                                      \
        return each(args[0], NULL, function, function);                                                                                    \
    }

INTO(lgamma, log_gamma, log_gamma)
INTO(digamma, digamma, digamma)
INTO(sinc, sinc_of_float, sinc_of_double)
INTO(i0, bessel_i0, bessel_i0)
UNARY(i0e, bessel_i0e)
UNARY(i1, bessel_i1)
UNARY(i1e, bessel_i1e)
UNARY(j0, j0)
UNARY(j1, j1)
UNARY(y0, y0)
UNARY(y1, y1)

const KernelEntry special_kernels[] = {
    {"special.lgamma", lgamma_kernel},
    {"special.digamma", digamma_kernel},
    {"special.sinc", sinc_kernel},
    {"special.zeta", zeta_kernel},
    {"special.polygamma", polygamma_kernel},
    {"special.i0", i0_kernel},
    {"bessel.i0e", i0e_kernel},
    {"bessel.modified_bessel_i1", i1_kernel},
    {"bessel.i1e", i1e_kernel},
    {"bessel.bessel_j0", j0_kernel},
    {"bessel.bessel_j1", j1_kernel},
    {"bessel.bessel_y0", y0_kernel},
    {"bessel.bessel_y1", y1_kernel},
    {NULL, NULL},
};
