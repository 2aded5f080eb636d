/* Single operations of IEEE 754, which any two implementations compute alike. Included, by the files of loops, for each type and processor. */

#define BUILTIN(name, x) (IS_DOUBLE ? (T)__builtin_##name(x) : (T)__builtin_##name##f(x))

INLINED T NAME(fabs)(T x)
{
    return BUILTIN(fabs, x);
}

INLINED T NAME(sqrt)(T x)
{
    return BUILTIN(sqrt, x);
}

INLINED T NAME(floor)(T x)
{
    return BUILTIN(floor, x);
}

INLINED T NAME(ceil)(T x)
{
    return BUILTIN(ceil, x);
}

INLINED T NAME(trunc)(T x)
{
    return BUILTIN(trunc, x);
}

/* To the nearest whole number, halves to the even one. */
INLINED T NAME(rint)(T x)
{
    return BUILTIN(rint, x);
}

INLINED T NAME(copysign)(T magnitude, T sign)
{
    return IS_DOUBLE ? (T)__builtin_copysign(magnitude, sign) : (T)__builtin_copysignf(magnitude, sign);
}

#undef BUILTIN
