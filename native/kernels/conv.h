/* What the kernels of convolutions share: a plain convolution's sizes. A transposed one is the adjoint of the plain one of these sizes. */
#ifndef MINDTORCH_CONV_H
#define MINDTORCH_CONV_H

#include <string.h>

#include "windows.h"

typedef struct {
    Windows w;
    npy_intp batch, channels, outputs, groups; /* channels of the plain convolution's input; of its result */
    npy_intp plane_in, plane_out, places;
} Conv;

/* Dense arrays of a plain convolution, of one item size. `gradient` and `result` lie as its result, `shift` has an element for each output or is NULL. */
INTERNAL int conv_forward(const Conv *v, int width, const void *x, const void *weight, const void *shift, void *result);
INTERNAL int conv_input_gradient(const Conv *v, int width, const void *gradient, const void *weight, void *x);
INTERNAL int conv_weight_gradient(const Conv *v, int width, const void *gradient, const void *x, void *weight);

/* The same of float32 without patches, where windows_serve says yes. */
INTERNAL int windows_serve(const Conv *v, int width);
INTERNAL int windows_serve_input_gradient(const Conv *v, int width);
INTERNAL int windows_forward(const Conv *v, const float *x, const float *weight, const float *shift, float *result);
INTERNAL int windows_input_gradient(const Conv *v, const float *gradient, const float *weight, float *x);
INTERNAL int windows_serve_weight_gradient(const Conv *v, int width);
INTERNAL int windows_weight_gradient(const Conv *v, const float *gradient, const float *x, float *weight);

/* The same for groups of one input channel: sums over the places of the kernel. 0 when memory is lacking. */
INTERNAL int by_channel_forward(const Conv *v, int width, const void *x, const void *weight, const void *shift, void *result);
INTERNAL int by_channel_input_gradient(const Conv *v, int width, const void *gradient, const void *weight, void *x);
INTERNAL int by_channel_weight_gradient(const Conv *v, int width, const void *gradient, const void *x, void *weight);

/* The planes of an image within zeros. */
INTERNAL void pad_planes(const Conv *v, const float *x, float *to);

static inline int is_by_channel(const Conv *v)
{
    return v->channels == v->groups && v->groups > 1;
}

#endif
