/* Orders of keys of one width, which stand above their places in one number: pairs are never equal, and among equal keys the first place leads.
 *
 * Included with NAME, KEY, KEY_BITS, PAIR and PLACE_BITS.
 */

#define KEY_OF(pair) ((KEY)((pair) >> PLACE_BITS))

static inline PAIR NAME(pair)(KEY key, npy_intp place)
{
    return ((PAIR)key << PLACE_BITS) | (PAIR)place;
}

#define DIGITS ((PLACE_BITS + KEY_BITS) / 8)
#define DIGIT(pair, digit) ((int)((pair) >> (8 * (digit))) & 255)

/* n pairs in order: digit after digit, from `digit` on, which is 0 unless the places ascend already. The result is in `a` or in `spare`. */
static PAIR *NAME(sorted)(PAIR *a, PAIR *spare, npy_intp n, int digit)
{
    if (n <= FEW_PAIRS) {
        for (npy_intp i = 1; i < n; i++) {
            PAIR pair = a[i];
            npy_intp at = i;
            for (; at > 0 && pair < a[at - 1]; at--) {
                a[at] = a[at - 1];
            }
            a[at] = pair;
        }
        return a;
    }
    npy_uint32 counts[DIGITS][256];
    memset(counts[digit], 0, (size_t)(DIGITS - digit) * sizeof(counts[0]));
    for (npy_intp i = 0; i < n; i++) {
        for (int d = digit; d < DIGITS; d++) {
            counts[d][DIGIT(a[i], d)]++;
        }
    }
    for (int d = digit; d < DIGITS; d++) {
        npy_uint32 *count = counts[d], before = 0;
        if (count[DIGIT(a[0], d)] == (npy_uint32)n) {
            continue;
        }
        for (int value = 0; value < 256; value++) {
            const npy_uint32 here = count[value];
            count[value] = before;
            before += here;
        }
        for (npy_intp i = 0; i < n; i++) {
            const PAIR pair = a[i];
            spare[count[DIGIT(pair, d)]++] = pair;
        }
        PAIR *other = a;
        a = spare;
        spare = other;
    }
    return a;
}

/* Brings the k first of n pairs to the front, in any order (Hoare's selection). Pivots are drawn, so that no input is a slow one. */
static void NAME(select)(PAIR *a, npy_intp n, npy_intp k)
{
    npy_uint64 draw = 0x9e3779b97f4a7c15u ^ (npy_uint64)n;
    npy_intp low = 0, high = n - 1;
    while (low < high) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        const PAIR pivot = a[low + (npy_intp)((draw >> 33) % (npy_uint64)(high - low + 1))];
        npy_intp i = low, j = high;
        while (i <= j) {
            while (a[i] < pivot) {
                i++;
            }
            while (pivot < a[j]) {
                j--;
            }
            if (i <= j) {
                const PAIR pair = a[i];
                a[i++] = a[j];
                a[j--] = pair;
            }
        }
        if (k - 1 <= j) {
            high = j;
        }
        else if (k - 1 >= i) {
            low = i;
        }
        else {
            return;
        }
    }
}

/* The k first of n keys, in order; `a` and `spare` have room for n pairs. Keys that come after k others already are passed over in blocks. */
static PAIR *NAME(first)(const KEY *keys, npy_intp n, npy_intp k, PAIR *a, PAIR *spare)
{
    const npy_intp room = 2 * k + KEY_BLOCK;
    npy_intp count = 0;
    KEY limit = (KEY)-1;
    for (npy_intp start = 0; start < n; start += KEY_BLOCK) {
        const npy_intp end = n - start < KEY_BLOCK ? n : start + KEY_BLOCK;
        if (count >= k && end - start == KEY_BLOCK) {
            KEY smaller = 0;
            for (int i = 0; i < KEY_BLOCK; i++) {
                smaller |= keys[start + i] < limit;
            }
            if (!smaller) {
                continue;
            }
        }
        for (npy_intp i = start; i < end; i++) {
            if (count >= k && keys[i] >= limit) {
                continue;
            }
            a[count++] = NAME(pair)(keys[i], i);
            if (count == room) {
                NAME(select)(a, count, k);
                count = k;
                PAIR last = a[0];
                for (npy_intp j = 1; j < k; j++) {
                    last = a[j] > last ? a[j] : last;
                }
                limit = KEY_OF(last);
            }
        }
    }
    NAME(select)(a, count, k);
    return NAME(sorted)(a, spare, k, 0);
}

/* All n keys in order. */
static PAIR *NAME(all)(const KEY *keys, npy_intp n, PAIR *a, PAIR *spare)
{
    for (npy_intp i = 0; i < n; i++) {
        a[i] = NAME(pair)(keys[i], i);
    }
    return NAME(sorted)(a, spare, n, PLACE_BITS / 8);
}

/* The places of the k first of n keys, in order. */
static void NAME(places)(const KEY *keys, npy_intp n, npy_intp k, void *space, npy_int64 *places)
{
    PAIR *a = space, *made = k < n / 4 && n > 2 * KEY_BLOCK ? NAME(first)(keys, n, k, a, a + n) : NAME(all)(keys, n, a, a + n);
    for (npy_intp i = 0; i < k; i++) {
        places[i] = (npy_int64)(made[i] & (((PAIR)1 << PLACE_BITS) - 1));
    }
}

#undef DIGIT
#undef DIGITS
#undef KEY_OF
#undef NAME
#undef KEY
#undef KEY_BITS
#undef PAIR
#undef PLACE_BITS
