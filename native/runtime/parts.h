/* Loops in parts, on the threads of one pool. */
#ifndef MINDTORCH_PARTS_H
#define MINDTORCH_PARTS_H

#include <numpy/npy_common.h>

/* The indices from `begin` up to `end` of a loop, which are computed without those before them. */
typedef void (*LoopPart)(void *work, npy_intp begin, npy_intp end);

extern __attribute__((visibility("hidden"))) _Atomic int part_threads; /* threads that a loop may take, its caller's included */

/* Lets loops take so many threads; gives the number that they will. */
__attribute__((visibility("hidden"))) int use_part_threads(int count);

/* Runs the parts of 0 .. n, each of which begins at a multiple of `grain`, on several threads. */
__attribute__((visibility("hidden"))) void spread_parts(LoopPart part, void *work, npy_intp n, npy_intp grain);

/* A loop over 0 .. n, in parts of at least `grain` where there is more than one thread. Without the GIL, if there is more than one part.
 *
 * Note [The same bits on any number of threads]. What an index gives does not depend on the part that it is in: sums over several indices are made
 * of sums over fixed ones. Loops over elements are given a grain that is a multiple of 64 elements, so that what a loop of vectors leaves over is
 * the end of the array alone, as it is on one thread.
 */
static inline void in_parts(LoopPart part, void *work, npy_intp n, npy_intp grain)
{
    if (part_threads < 2 || n < 2 * grain) {
        part(work, 0, n);
    }
    else {
        spread_parts(part, work, n, grain);
    }
}

/* The same in as many parts of one size as there are threads, which begin at multiples of `unit`, and fewer where these were shorter than `least`: for
 * loops that lose by each part that is made. */
static inline void in_shares(LoopPart part, void *work, npy_intp n, npy_intp unit, npy_intp least)
{
    const npy_intp threads = part_threads, fair = (n + threads - 1) / threads, share = ((fair > least ? fair : least) + unit - 1) / unit * unit;
    if (threads < 2 || share >= n) {
        part(work, 0, n);
    }
    else {
        spread_parts(part, work, n, share);
    }
}

/* Indices that make a part worth a thread, where each takes as long as so many simple elements. */
#define PART_ELEMENTS 32768
static inline npy_intp grain_of(npy_intp elements)
{
    return elements >= PART_ELEMENTS ? 1 : PART_ELEMENTS / (elements > 1 ? elements : 1);
}

#endif
