/* The negative log likelihood of classes; included for each type and processor. */

/* Per sample (`each`) or together: losses, and the weights that counted. `ignored` is no class, or one that does not count. */
static void NAME(class_losses)(const void *input, const npy_int64 *target, const void *weights, npy_intp samples, npy_intp classes,
                               npy_int64 ignored, int mean, void *each, void *together, void *counted)
{
    const T *scores = input, *weight = weights;
    double loss = 0, total = 0;
    for (npy_intp i = 0; i < samples; i++, scores += classes) {
        T share = target[i] == ignored ? 0 : weight == NULL ? 1 : weight[target[i]];
        T one = target[i] == ignored ? 0 : -scores[target[i]] * share;
        if (each != NULL) {
            ((T *)each)[i] = one;
        }
        loss += one;
        total += share;
    }
    if (each == NULL) {
        *(T *)together = (T)(mean ? loss / total : loss);
        *(T *)counted = (T)total;
    }
    else {
        *(T *)counted = 0;
    }
}

/* The gradient of the scores, which are zero before. `gradient` has one element, or one for each sample. */
static void NAME(class_gradients)(const void *gradient, int each, const npy_int64 *target, const void *weights, npy_intp samples,
                                  npy_intp classes, npy_int64 ignored, const void *counted, void *output)
{
    const T *grad = gradient, *weight = weights;
    T *out = output;
    for (npy_intp i = 0; i < samples; i++, out += classes) {
        if (target[i] != ignored) {
            T share = -(weight == NULL ? (T)1 : weight[target[i]]) * grad[each ? i : 0];
            out[target[i]] = counted == NULL ? share : share / *(const T *)counted;
        }
    }
}
