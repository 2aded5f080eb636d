/* Orders and selections whose outcome among equal elements is PyTorch's, which is that of the algorithms in the C++ library that it is built with: an
 * introspective sort and selection, and the k first by a heap.
 *
 * Note [Equal elements]
 * Which of several equal elements is among the k first, which of them comes first, and which one a mode or a k-th value is said to be at, follows from
 * the steps of the algorithm alone: from where pivots are taken, and from what is exchanged with what. So each function here does the steps of its
 * model one by one. `selection.py` has the same for rows of numpy.
 *
 * `v` are elements, `p` their places, which move along; `down` puts the largest first. LESS(a, b) is a strict order with NaN behind all else.
 */
#ifndef MINDTORCH_CHOOSE_H
#define MINDTORCH_CHOOSE_H

#define FEW_TO_SORT 16 /* as many are left to the insertion at the end */

static inline int twice_log2(npy_intp n)
{
    int log = 0;
    while (n >>= 1) {
        log++;
    }
    return 2 * log;
}

#define LESS_FLOAT(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))
#define LESS_INT(a, b) ((a) < (b))

#define CHOOSE(name, T, LESS)                                                                                                              \
    static inline int name##_ahead(T a, T b, int down)                                                                                     \
    {                                                                                                                                      \
        return down ? LESS(b, a) : LESS(a, b);                                                                                             \
    }                                                                                                                                      \
    static inline void name##_exchange(T *v, npy_intp *p, npy_intp a, npy_intp b)                                                          \
    {                                                                                                                                      \
        T value = v[a];                                                                                                                    \
        npy_intp place = p[a];                                                                                                             \
        v[a] = v[b], p[a] = p[b];                                                                                                          \
        v[b] = value, p[b] = place;                                                                                                        \
    }                                                                                                                                      \
    /* The hole at the heap's `at` sinks to a leaf, and the element rises from there. */                                                   \
    static inline void name##_sink(T *v, npy_intp *p, npy_intp at, npy_intp n, T value, npy_intp place, int down)                                 \
    {                                                                                                                                      \
        const npy_intp top = at;                                                                                                           \
        for (npy_intp child = 2 * at + 2; child <= n; child = 2 * at + 2) {                                                                \
            if (child == n || name##_ahead(v[child], v[child - 1], down)) {                                                                \
                child--;                                                                                                                   \
            }                                                                                                                              \
            v[at] = v[child], p[at] = p[child];                                                                                            \
            at = child;                                                                                                                    \
        }                                                                                                                                  \
        for (npy_intp above = (at - 1) / 2; at > top && name##_ahead(v[above], value, down); above = (at - 1) / 2) {                       \
            v[at] = v[above], p[at] = p[above];                                                                                            \
            at = above;                                                                                                                    \
        }                                                                                                                                  \
        v[at] = value, p[at] = place;                                                                                                      \
    }                                                                                                                                      \
    /* The heap's top goes to `to`, whose element takes part in its stead. */                                                              \
    static inline void name##_pop(T *v, npy_intp *p, npy_intp n, npy_intp to, int down)                                                           \
    {                                                                                                                                      \
        T value = v[to];                                                                                                                   \
        npy_intp place = p[to];                                                                                                            \
        v[to] = v[0], p[to] = p[0];                                                                                                        \
        name##_sink(v, p, 0, n, value, place, down);                                                                                       \
    }                                                                                                                                      \
    /* The k first of n, as a heap. */                                                                                                     \
    static inline void name##_heap(T *v, npy_intp *p, npy_intp k, npy_intp n, int down)                                                           \
    {                                                                                                                                      \
        for (npy_intp at = k / 2; at-- > 0;) {                                                                                             \
            name##_sink(v, p, at, k, v[at], p[at], down);                                                                                  \
        }                                                                                                                                  \
        for (npy_intp i = k; i < n; i++) {                                                                                                 \
            if (name##_ahead(v[i], v[0], down)) {                                                                                          \
                name##_pop(v, p, k, i, down);                                                                                              \
            }                                                                                                                              \
        }                                                                                                                                  \
    }                                                                                                                                      \
    /* The k first of n, in order. */                                                                                                      \
    static inline void name##_few(T *v, npy_intp *p, npy_intp k, npy_intp n, int down)                                                            \
    {                                                                                                                                      \
        name##_heap(v, p, k, n, down);                                                                                                     \
        while (k > 1) {                                                                                                                    \
            k--;                                                                                                                           \
            name##_pop(v, p, k, k, down);                                                                                                  \
        }                                                                                                                                  \
    }                                                                                                                                      \
    /* Parts low to high (without) about the median of the second, the middle and the last, which goes to `low`; gives where the second part begins. */ \
    static inline npy_intp name##_part(T *v, npy_intp *p, npy_intp low, npy_intp high, int down)                                                  \
    {                                                                                                                                      \
        const npy_intp a = low + 1, b = low + (high - low) / 2, c = high - 1;                                                              \
        const int ab = name##_ahead(v[a], v[b], down), bc = name##_ahead(v[b], v[c], down), ac = name##_ahead(v[a], v[c], down);           \
        name##_exchange(v, p, low, ab ? (bc ? b : ac ? c : a) : ac ? a : bc ? c : b);                                                      \
        npy_intp i = low + 1, j = high;                                                                                                    \
        for (;; i++) {                                                                                                                     \
            while (name##_ahead(v[i], v[low], down)) {                                                                                     \
                i++;                                                                                                                       \
            }                                                                                                                              \
            do {                                                                                                                           \
                j--;                                                                                                                       \
            } while (name##_ahead(v[low], v[j], down));                                                                                    \
            if (i >= j) {                                                                                                                  \
                return i;                                                                                                                  \
            }                                                                                                                              \
            name##_exchange(v, p, i, j);                                                                                                   \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static inline void name##_insert(T *v, npy_intp *p, npy_intp n, int down)                                                                     \
    {                                                                                                                                      \
        for (npy_intp i = 1; i < n; i++) {                                                                                                 \
            T value = v[i];                                                                                                                \
            npy_intp place = p[i], at = i;                                                                                                 \
            for (; at > 0 && name##_ahead(value, v[at - 1], down); at--) {                                                                 \
                v[at] = v[at - 1], p[at] = p[at - 1];                                                                                      \
            }                                                                                                                              \
            v[at] = value, p[at] = place;                                                                                                  \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static inline void name##_parts(T *v, npy_intp *p, npy_intp low, npy_intp high, int depth, int down)                                          \
    {                                                                                                                                      \
        while (high - low > FEW_TO_SORT) {                                                                                                 \
            if (depth-- == 0) {                                                                                                            \
                name##_few(v + low, p + low, high - low, high - low, down);                                                                \
                return;                                                                                                                    \
            }                                                                                                                              \
            npy_intp cut = name##_part(v, p, low, high, down);                                                                             \
            name##_parts(v, p, cut, high, depth, down);                                                                                    \
            high = cut;                                                                                                                    \
        }                                                                                                                                  \
    }                                                                                                                                      \
    /* All n in order. */                                                                                                                  \
    static inline void name##_all(T *v, npy_intp *p, npy_intp n, int down)                                                                        \
    {                                                                                                                                      \
        name##_parts(v, p, 0, n, twice_log2(n), down);                                                                                     \
        name##_insert(v, p, n, down);                                                                                                      \
    }                                                                                                                                      \
    /* What is at `k` in order goes there, what is ahead of it before it. */                                                               \
    static inline void name##_nth(T *v, npy_intp *p, npy_intp k, npy_intp n, int down)                                                            \
    {                                                                                                                                      \
        npy_intp low = 0, high = n;                                                                                                        \
        for (int depth = twice_log2(n); high - low > 3; depth--) {                                                                         \
            if (depth == 0) {                                                                                                              \
                name##_heap(v + low, p + low, k + 1 - low, high - low, down);                                                              \
                name##_exchange(v, p, low, k);                                                                                             \
                return;                                                                                                                    \
            }                                                                                                                              \
            npy_intp cut = name##_part(v, p, low, high, down);                                                                             \
            *(cut <= k ? &low : &high) = cut;                                                                                              \
        }                                                                                                                                  \
        name##_insert(v + low, p + low, high - low, down);                                                                                 \
    }                                                                                                                                      \
    /* The k first as topk gives them. */                                                                                                  \
    static inline void name##_first(T *v, npy_intp *p, npy_intp k, npy_intp n, int down, int in_order)                                            \
    {                                                                                                                                      \
        if (k <= n / 64) {                                                                                                                 \
            name##_few(v, p, k, n, down);                                                                                                  \
            return;                                                                                                                        \
        }                                                                                                                                  \
        name##_nth(v, p, k - 1, n, down);                                                                                                  \
        if (in_order) {                                                                                                                    \
            name##_all(v, p, k - 1, down);                                                                                                 \
        }                                                                                                                                  \
    }                                                                                                                                      \
    /* The k-th smallest as kthvalue finds it: parts about the median of the first, the middle and the last. */                            \
    static inline void name##_kth(T *v, npy_intp *p, npy_intp k, npy_intp n)                                                                      \
    {                                                                                                                                      \
        npy_intp low = 0, high = n - 1;                                                                                                    \
        while (high > low + 1) {                                                                                                           \
            name##_exchange(v, p, low + (high - low) / 2, low + 1);                                                                        \
            const npy_intp pairs[3][2] = {{low + 1, high}, {low, high}, {low + 1, low}};                                                   \
            for (int i = 0; i < 3; i++) {                                                                                                  \
                if (LESS(v[pairs[i][1]], v[pairs[i][0]])) {                                                                                \
                    name##_exchange(v, p, pairs[i][0], pairs[i][1]);                                                                       \
                }                                                                                                                          \
            }                                                                                                                              \
            npy_intp i = low + 1, j = high;                                                                                                \
            for (;;) {                                                                                                                     \
                do {                                                                                                                       \
                    i++;                                                                                                                   \
                } while (LESS(v[i], v[low]));                                                                                              \
                do {                                                                                                                       \
                    j--;                                                                                                                   \
                } while (LESS(v[low], v[j]));                                                                                              \
                if (j < i) {                                                                                                               \
                    break;                                                                                                                 \
                }                                                                                                                          \
                name##_exchange(v, p, i, j);                                                                                               \
            }                                                                                                                              \
            name##_exchange(v, p, low, j);                                                                                                 \
            if (j <= k) {                                                                                                                  \
                low = i;                                                                                                                   \
            }                                                                                                                              \
            if (j >= k) {                                                                                                                  \
                high = j - 1;                                                                                                              \
            }                                                                                                                              \
        }                                                                                                                                  \
        if (high == low + 1 && LESS(v[high], v[low])) {                                                                                    \
            name##_exchange(v, p, low, high);                                                                                              \
        }                                                                                                                                  \
    }

#endif
