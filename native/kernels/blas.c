/* The BLAS that numpy carries. numpy gives no C interface to it; its functions are found among what numpy's own extension was linked with. */
#ifdef __linux__
#define _GNU_SOURCE
#include <dlfcn.h>
#endif
#include "blas.h"
#include "gemm.h"

/* Sizes are passed as 64-bit numbers to either kind of build: on 64-bit little-endian Linux a 32-bit parameter is the lower half of one. */
typedef void (*Sgemm)(int, int, int, npy_intp, npy_intp, npy_intp, float, const float *, npy_intp, const float *, npy_intp, float, float *, npy_intp);
typedef void (*Dgemm)(int, int, int, npy_intp, npy_intp, npy_intp, double, const double *, npy_intp, const double *, npy_intp, double, double *,
                      npy_intp);

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TURNED = 112 }; /* as CBLAS has them */

static struct {
    int looked, long_ints;
    void *library;
    Sgemm sgemm;
    Dgemm dgemm;
    void (*set_threads)(int);
    int (*get_threads)(void);
} found;

#if defined(__linux__) && defined(__LP64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static void look(void)
{
    static const char *const names[][2] = {
        {"scipy_cblas_sgemm64_", "scipy_cblas_dgemm64_"},
        {"cblas_sgemm64_", "cblas_dgemm64_"},
        {"scipy_cblas_sgemm", "scipy_cblas_dgemm"},
        {"cblas_sgemm", "cblas_dgemm"},
    };
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    PyObject *path = module == NULL ? NULL : PyModule_GetFilenameObject(module);
    const char *file = path == NULL ? NULL : PyUnicode_AsUTF8(path);
    void *library = file == NULL ? NULL : dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; library != NULL && i < sizeof(names) / sizeof(names[0]) && found.dgemm == NULL; i++) {
        found.sgemm = (Sgemm)dlsym(library, names[i][0]);
        found.dgemm = found.sgemm == NULL ? NULL : (Dgemm)dlsym(library, names[i][1]);
        found.long_ints = i < 2;
    }
    found.library = library;
    static const char *const setters[][2] = {
        {"scipy_openblas_set_num_threads64_", "scipy_openblas_get_num_threads64_"},
        {"openblas_set_num_threads64_", "openblas_get_num_threads64_"},
        {"scipy_openblas_set_num_threads", "scipy_openblas_get_num_threads"},
        {"openblas_set_num_threads", "openblas_get_num_threads"},
    };
    for (size_t i = 0; library != NULL && i < sizeof(setters) / sizeof(setters[0]) && found.get_threads == NULL; i++) {
        found.set_threads = (void (*)(int))dlsym(library, setters[i][0]);
        found.get_threads = found.set_threads == NULL ? NULL : (int (*)(void))dlsym(library, setters[i][1]);
    }
    Py_XDECREF(path);
    Py_XDECREF(module);
    PyErr_Clear();
}

void *lapack_function(const char *name)
{
    char whole[32];
    void *function = NULL;
    for (int i = 0; i < 2 && has_blas() && found.long_ints && function == NULL; i++) {
        PyOS_snprintf(whole, sizeof(whole), i ? "%s_64_" : "scipy_%s_64_", name);
        function = dlsym(found.library, whole);
    }
    return function;
}
#else
static void look(void)
{
}

void *lapack_function(const char *name)
{
    (void)name;
    return NULL;
}
#endif

int has_blas(void)
{
    if (!found.looked) {
        look();
        found.looked = 1;
    }
    return found.dgemm != NULL;
}

void multiply(int width, int a_turned, int b_turned, npy_intp m, npy_intp n, npy_intp k, double alpha, const void *a, npy_intp a_row, const void *b,
              npy_intp b_row, double beta, void *c, npy_intp c_row)
{
    const Gemm own = {a,
                      b,
                      c,
                      NULL,
                      m,
                      n,
                      k,
                      a_turned ? 1 : a_row,
                      a_turned ? a_row : 1,
                      b_turned ? 1 : b_row,
                      b_turned ? b_row : 1,
                      c_row,
                      alpha,
                      beta};
    if (gemm_serves(&own)) {
        gemm(width, &own);
        return;
    }
    const int of_a = a_turned ? TURNED : AS_IT_IS, of_b = b_turned ? TURNED : AS_IT_IS;
    if (width == 4) {
        found.sgemm(ROW_MAJOR, of_a, of_b, m, n, k, (float)alpha, a, a_row, b, b_row, (float)beta, c, c_row);
    }
    else {
        found.dgemm(ROW_MAJOR, of_a, of_b, m, n, k, alpha, a, a_row, b, b_row, beta, c, c_row);
    }
}

void use_blas_threads(int count)
{
    if (has_blas() && found.get_threads != NULL) {
        found.set_threads(count);
    }
}

void in_parts_of_products(LoopPart part, void *work, npy_intp n, npy_intp grain)
{
    if (part_threads < 2 || n < 2 * grain || found.get_threads == NULL) {
        part(work, 0, n);
        return;
    }
    const int before = found.get_threads();
    if (before > 1) {
        found.set_threads(1);
    }
    in_parts(part, work, n, grain);
    if (before > 1) {
        found.set_threads(before);
    }
}
