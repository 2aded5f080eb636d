/* The recurrence and the tempering of mt19937; included for each processor. */
#if !IS_DOUBLE /* there is but one type */

static TARGET void NAME(twist)(npy_uint32 *words)
{
    npy_intp i;
    for (i = 0; i < 227; i++) {
        npy_uint32 y = (words[i] & 0x80000000U) | (words[i + 1] & 0x7FFFFFFFU);
        words[i] = words[i + 397] ^ (y >> 1) ^ ((0U - (y & 1U)) & 0x9908B0DFU);
    }
    for (; i < 623; i++) {
        npy_uint32 y = (words[i] & 0x80000000U) | (words[i + 1] & 0x7FFFFFFFU);
        words[i] = words[i - 227] ^ (y >> 1) ^ ((0U - (y & 1U)) & 0x9908B0DFU);
    }
    npy_uint32 y = (words[623] & 0x80000000U) | (words[0] & 0x7FFFFFFFU);
    words[623] = words[396] ^ (y >> 1) ^ ((0U - (y & 1U)) & 0x9908B0DFU);
}

static TARGET void NAME(temper)(const npy_uint32 *restrict words, npy_uint32 *restrict out, npy_intp n)
{
    for (npy_intp i = 0; i < n; i++) {
        npy_uint32 y = words[i];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9D2C5680U;
        y ^= (y << 15) & 0xEFC60000U;
        out[i] = y ^ (y >> 18);
    }
}
#endif
