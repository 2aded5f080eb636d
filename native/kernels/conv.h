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
static inline void pad_planes(const Conv *v, const float *x, float *to)
{
    const npy_intp *in = v->w.in, *padding = v->w.padding, row = in[2] + 2 * padding[2];
    for (npy_intp c = 0; c < v->channels; c++) {
        for (npy_intp i = -padding[0]; i < in[0] + padding[0]; i++) {
            for (npy_intp j = -padding[1]; j < in[1] + padding[1]; j++, to += row) {
                if (i < 0 || i >= in[0] || j < 0 || j >= in[1]) {
                    memset(to, 0, (size_t)row * sizeof(float));
                    continue;
                }
                memset(to, 0, (size_t)padding[2] * sizeof(float));
                memcpy(to + padding[2], x, (size_t)in[2] * sizeof(float));
                memset(to + padding[2] + in[2], 0, (size_t)padding[2] * sizeof(float));
                x += in[2];
            }
        }
    }
}

static inline int is_by_channel(const Conv *v)
{
    return v->channels == v->groups && v->groups > 1;
}

#endif
