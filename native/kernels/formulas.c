/* Derivatives of the operators that small programs are made of, for plain arrays: what the nodes' `apply` computes with operators. */
#include "engine.h"

const Formula formulas[] = {
    {NULL, 0, NULL},
};

/* The classes of nodes that recorders make, by address. */
#define CLASSES 2048 /* a power of two; the table is left half empty */

static struct {
    PyTypeObject *cls;
    const Formula *formula;
    int dense;
} known[CLASSES];
static int known_count;

static size_t place_of(PyTypeObject *cls)
{
    size_t at = ((size_t)cls >> 5) & (CLASSES - 1);
    while (known[at].cls != NULL && known[at].cls != cls) {
        at = (at + 1) & (CLASSES - 1);
    }
    return at;
}

const Formula *formula_of(PyTypeObject *cls)
{
    return known[place_of(cls)].formula;
}

int wants_dense(PyTypeObject *cls)
{
    return known[place_of(cls)].dense;
}

int register_formula(PyTypeObject *cls, const char *op, int dense)
{
    size_t at = place_of(cls);
    if (known[at].cls != NULL || known_count >= CLASSES / 2) {
        return 0; /* without a formula the node's `apply` serves */
    }
    known_count++;
    known[at].cls = (PyTypeObject *)Py_NewRef((PyObject *)cls);
    known[at].dense = dense;
    for (const Formula *formula = formulas; formula->op != NULL; formula++) {
        if (strcmp(formula->op, op) == 0) {
            known[at].formula = formula;
        }
    }
    return 0;
}
