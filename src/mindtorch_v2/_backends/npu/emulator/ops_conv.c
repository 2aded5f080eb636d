/* Convolutions of 1 to 3 dimensions, transposed ones, their gradients, and the unfolding that they rest on: in double, rounded once. */

#include "ops_shape.h"

/* Note [Columns]
 * Geometry is always three-dimensional, missing leading dimensions being 1. "Image" is the side that the kernel slides over, "grid" its positions: input and output
 * of a convolution, output and input of a transposed one. unfold: image [C, image] -> columns [C * kernel, grid]; fold: the reverse, adding up. */
typedef struct Slide { int64_t kernel[3], stride[3], padding[3], dilation[3], image[3], grid[3]; } Slide;

static int64_t volume(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

static void slide(const Slide *s, int64_t channels, double *image, double *columns, bool fold) {
    int64_t taps = volume(s->kernel), places = volume(s->grid), pixels = volume(s->image);
    for (int64_t row = 0; row < channels * taps; row++) {
        int64_t tap = row % taps, k[3] = {tap / (s->kernel[1] * s->kernel[2]), tap / s->kernel[2] % s->kernel[1], tap % s->kernel[2]}, at[3];
        double *plane = image + row / taps * pixels, *line = columns + row * places;
        for (at[0] = 0; at[0] < s->grid[0]; at[0]++)
            for (at[1] = 0; at[1] < s->grid[1]; at[1]++)
                for (at[2] = 0; at[2] < s->grid[2]; at[2]++, line++) {
                    int64_t position = 0;
                    bool inside = true;
                    for (int d = 0; d < 3; d++) {
                        int64_t x = at[d] * s->stride[d] - s->padding[d] + k[d] * s->dilation[d];
                        inside &= x >= 0 && x < s->image[d];
                        position = position * s->image[d] + x;
                    }
                    if (fold && inside) plane[position] += *line;
                    else if (!fold) *line = inside ? plane[position] : 0;
                }
    }
}

/* c[rows, columns] += a @ b, each given by the strides of its rows and columns. */
ES_FAST static void multiply(const double *a, int64_t a_row, int64_t a_column, const double *b, int64_t b_row, int64_t b_column, double *c, int64_t rows,
                             int64_t inner, int64_t columns) {
    double *packed = es_doubles(inner * columns);
    for (int64_t k = 0; k < inner; k++)
        for (int64_t j = 0; j < columns; j++) packed[k * columns + j] = b[k * b_row + j * b_column];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < inner; k++) {
            double x = a[i * a_row + k * a_column], *restrict line = c + i * columns;
            const double *restrict from = packed + k * columns;
            for (int64_t j = 0; j < columns; j++) line[j] += x * from[j];
        }
    free(packed);
}

/* What an array says for the last `spatial` of three dimensions; one number stands for all. */
static void spread(const EmInts *array, int spatial, int64_t missing, int64_t *into) {
    for (int d = 0; d < 3; d++) {
        int own = d - (3 - spatial);
        into[d] = own < 0 ? missing : array->values[array->size == 1 ? 0 : own];
    }
}
static void sizes_of(const EmTensor *tensor, int spatial, int64_t *into) {
    for (int d = 0; d < 3; d++) into[d] = d < 3 - spatial ? 1 : tensor->dims[tensor->ndim - 3 + d];
}

/* arrays: stride, padding, dilation. */
static Slide slide_of(const EmCall *call, const EmTensor *image, const EmTensor *grid, const EmTensor *weight) {
    Slide s;
    int spatial = weight->ndim - 2;
    spread(&call->array[0], spatial, 1, s.stride);
    spread(&call->array[1], spatial, 0, s.padding);
    spread(&call->array[2], spatial, 1, s.dilation);
    sizes_of(image, spatial, s.image);
    sizes_of(grid, spatial, s.grid);
    sizes_of(weight, spatial, s.kernel);
    return s;
}

/* tensors: input, weight, bias, output; integers: transposed, groups. */
static void convolution_kernel(EmCall *call) {
    const EmTensor *input = &call->tensor[0], *weight = &call->tensor[1], *bias = &call->tensor[2], *output = &call->tensor[3];
    bool transposed = call->integer[0];
    int64_t groups = call->integer[1], batch = output->numel ? output->dims[0] : 0, in = input->dims[1] / groups, out = output->dims[1] / groups;
    Slide s = slide_of(call, transposed ? output : input, transposed ? input : output, weight);
    int64_t taps = volume(s.kernel), places = volume(s.grid), pixels = volume(s.image), outputs = transposed ? pixels : places, inputs = transposed ? places : pixels;
    double *x = em_read_reals(input), *w = em_read_reals(weight), *b = bias->present ? em_read_reals(bias) : NULL, *y = es_doubles(output->numel);
    double *columns = es_doubles((transposed ? out : in) * taps * places);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t g = 0; g < groups; g++) {
            double *from = x + (n * groups + g) * in * inputs, *into = y + (n * groups + g) * out * outputs;
            if (transposed) { /* weight [in, out, taps] */
                memset(columns, 0, sizeof(double) * (size_t)(out * taps * places));
                multiply(w + g * in * out * taps, 1, out * taps, from, places, 1, columns, out * taps, in, places);
                slide(&s, out, into, columns, true);
            } else { /* weight [out, in, taps] */
                slide(&s, in, from, columns, false);
                multiply(w + g * out * in * taps, in * taps, 1, columns, places, 1, into, out, in * taps, places);
            }
            for (int64_t i = 0; b && i < out * outputs; i++) into[i] += b[g * out + i / outputs];
        }
    em_write_reals(output, y);
    free(x);
    free(w);
    free(b);
    free(y);
    free(columns);
}

static bool fits(const aclIntArray *array, int spatial, int64_t least) {
    if ((int)array->size != spatial && array->size != 1) return false;
    for (uint64_t i = 0; i < array->size; i++)
        if (array->values[i] < least) return false;
    return true;
}

static aclnnStatus check_convolution(aclOpExecutor *ex, const aclTensor *input, const aclTensor *weight, const aclIntArray *stride, const aclIntArray *padding,
                                     const aclIntArray *dilation, bool transposed, const aclIntArray *outputPadding, int64_t groups, const aclTensor *output) {
    EM_NOT_NULL(stride);
    EM_NOT_NULL(padding);
    EM_NOT_NULL(dilation);
    ES_DTYPE(input, ES_REALS);
    ES_DTYPE(weight, ES_REALS);
    EM_REQUIRE(input->ndim >= 3 && input->ndim <= 5, "input must have 3 to 5 dimensions");
    EM_REQUIRE(weight->ndim == input->ndim && output->ndim == input->ndim, "input, weight and output differ in their number of dimensions");
    int spatial = input->ndim - 2;
    EM_REQUIRE(fits(stride, spatial, 1) && fits(padding, spatial, 0) && fits(dilation, spatial, 1), "stride, padding or dilation is not valid");
    EM_REQUIRE(groups > 0 && input->dims[1] % groups == 0, "the channels are not divisible by groups");
    int64_t in = weight->dims[transposed ? 0 : 1] * (transposed ? 1 : groups), out = weight->dims[transposed ? 1 : 0] * (transposed ? groups : 1);
    EM_REQUIRE(in == input->dims[1], "weight is for %lld channels, input has %lld", (long long)in, (long long)input->dims[1]);
    EM_REQUIRE(out % groups == 0 && output->dims[0] == input->dims[0] && output->dims[1] == out, "output does not have the batch and channels of the result");
    for (int d = 0; d < spatial; d++) {
        int64_t st = stride->values[stride->size == 1 ? 0 : d], pad = padding->values[padding->size == 1 ? 0 : d];
        int64_t reach = dilation->values[dilation->size == 1 ? 0 : d] * (weight->dims[2 + d] - 1) + 1;
        int64_t more = transposed && outputPadding && outputPadding->size ? outputPadding->values[outputPadding->size == 1 ? 0 : d] : 0;
        int64_t size = transposed ? (input->dims[2 + d] - 1) * st - 2 * pad + reach + more : (input->dims[2 + d] + 2 * pad - reach) / st + 1;
        EM_REQUIRE(transposed || input->dims[2 + d] + 2 * pad >= reach, "the kernel is larger than the padded input in dimension %d", d);
        EM_REQUIRE(output->dims[2 + d] == size, "output has size %lld in dimension %d, not %lld", (long long)output->dims[2 + d], 2 + d, (long long)size);
    }
    return ACL_SUCCESS;
}

EM_OP(aclnnConvolution, const aclTensor *input, const aclTensor *weight, const aclTensor *bias, const aclIntArray *stride, const aclIntArray *padding,
      const aclIntArray *dilation, bool transposed, const aclIntArray *outputPadding, const int64_t groups, aclTensor *output, int8_t cubeMathType) {
    EM_BEGIN(aclnnConvolution);
    EM_NOT_NULL(input);
    EM_NOT_NULL(weight);
    EM_NOT_NULL(output);
    ES_CUBE_OF(cubeMathType, input->dtype);
    EM_REQUIRE(output->dtype == em_promote(input->dtype, weight->dtype), "output has another dtype than input and weight");
    aclnnStatus status = check_convolution(ex, input, weight, stride, padding, dilation, transposed, outputPadding, groups, output);
    if (status) return status;
    EM_REQUIRE(!bias || (bias->ndim == 1 && bias->dims[0] == output->dims[1]), "bias does not have a number per channel of the output");
    em_tensor(ex, input);
    em_tensor(ex, weight);
    em_tensor(ex, bias);
    em_tensor(ex, output);
    em_array(ex, stride);
    em_array(ex, padding);
    em_array(ex, dilation);
    em_integer(ex, transposed);
    em_integer(ex, groups);
    return em_ready(ex, convolution_kernel, 0);
}

/* tensors: gradOutput, input, weight, and the three gradients; integers: transposed, groups. */
static void convolution_backward_kernel(EmCall *call) {
    const EmTensor *t = call->tensor;
    bool transposed = call->integer[0];
    int64_t groups = call->integer[1], batch = t[1].dims[0], in = t[1].dims[1] / groups, out = t[0].dims[1] / groups;
    Slide s = slide_of(call, transposed ? &t[0] : &t[1], transposed ? &t[1] : &t[0], &t[2]);
    int64_t taps = volume(s.kernel), places = volume(s.grid), pixels = volume(s.image), outputs = transposed ? pixels : places, inputs = transposed ? places : pixels;
    double *dy = em_read_reals(&t[0]), *x = em_read_reals(&t[1]), *w = em_read_reals(&t[2]);
    double *dx = es_doubles(t[1].numel), *dw = es_doubles(t[2].numel), *db = es_doubles(t[0].dims[1]);
    double *columns = es_doubles((transposed ? out : in) * taps * places);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t g = 0; g < groups; g++) {
            double *from = x + (n * groups + g) * in * inputs, *grad = dy + (n * groups + g) * out * outputs, *into = dx + (n * groups + g) * in * inputs;
            double *kernel = w + g * in * out * taps, *kernel_grad = dw + g * in * out * taps;
            if (transposed) {
                slide(&s, out, grad, columns, false);
                if (t[3].present) multiply(kernel, out * taps, 1, columns, places, 1, into, in, out * taps, places);
                if (t[4].present) multiply(from, places, 1, columns, 1, places, kernel_grad, in, places, out * taps);
            } else {
                if (t[4].present) {
                    slide(&s, in, from, columns, false);
                    multiply(grad, places, 1, columns, 1, places, kernel_grad, out, places, in * taps);
                }
                if (t[3].present) {
                    memset(columns, 0, sizeof(double) * (size_t)(in * taps * places));
                    multiply(kernel, 1, in * taps, grad, places, 1, columns, in * taps, out, places);
                    slide(&s, in, into, columns, true);
                }
            }
            for (int64_t i = 0; i < out * outputs; i++) db[g * out + i / outputs] += grad[i];
        }
    if (t[3].present) em_write_reals(&t[3], dx);
    if (t[4].present) em_write_reals(&t[4], dw);
    if (t[5].present) em_write_reals(&t[5], db);
    free(dy);
    free(x);
    free(w);
    free(dx);
    free(dw);
    free(db);
    free(columns);
}

EM_OP(aclnnConvolutionBackward, const aclTensor *gradOutput, const aclTensor *input, const aclTensor *weight, const aclIntArray *biasSizes,
      const aclIntArray *stride, const aclIntArray *padding, const aclIntArray *dilation, bool transposed, const aclIntArray *outputPadding, int groups,
      const aclBoolArray *outputMask, int8_t cubeMathType, aclTensor *gradInput, aclTensor *gradWeight, aclTensor *gradBias) {
    EM_BEGIN(aclnnConvolutionBackward);
    EM_NOT_NULL(gradOutput);
    EM_NOT_NULL(input);
    EM_NOT_NULL(weight);
    EM_NOT_NULL(outputMask);
    ES_CUBE_OF(cubeMathType, input->dtype);
    ES_SAME_DTYPE(gradOutput, input);
    EM_REQUIRE(outputMask->size == 3, "outputMask must have 3 values");
    bool want[3] = {outputMask->values[0], outputMask->values[1], outputMask->values[2]};
    aclnnStatus status = check_convolution(ex, input, weight, stride, padding, dilation, transposed, outputPadding, groups, gradOutput);
    if (status) return status;
    if (want[0]) {
        EM_NOT_NULL(gradInput);
        ES_SAME_SHAPE(gradInput, input);
    }
    if (want[1]) {
        EM_NOT_NULL(gradWeight);
        ES_SAME_SHAPE(gradWeight, weight);
    }
    if (want[2]) {
        EM_NOT_NULL(gradBias);
        EM_NOT_NULL(biasSizes);
        EM_REQUIRE(gradBias->ndim == 1 && gradBias->dims[0] == gradOutput->dims[1], "gradBias does not have a number per channel");
    }
    em_tensor(ex, gradOutput);
    em_tensor(ex, input);
    em_tensor(ex, weight);
    em_tensor(ex, want[0] ? gradInput : NULL);
    em_tensor(ex, want[1] ? gradWeight : NULL);
    em_tensor(ex, want[2] ? gradBias : NULL);
    em_array(ex, stride);
    em_array(ex, padding);
    em_array(ex, dilation);
    em_integer(ex, transposed);
    em_integer(ex, groups);
    return em_ready(ex, convolution_backward_kernel, 0);
}

/* tensors: the image, the columns; arrays: stride, padding, dilation, kernel; integer: whether the columns are folded into the image. */
static void im2col_kernel(EmCall *call) {
    bool fold = call->integer[0];
    const EmTensor *image = &call->tensor[0], *columns = &call->tensor[1];
    Slide s;
    spread(&call->array[0], 2, 1, s.stride);
    spread(&call->array[1], 2, 0, s.padding);
    spread(&call->array[2], 2, 1, s.dilation);
    spread(&call->array[3], 2, 1, s.kernel);
    sizes_of(image, 2, s.image);
    s.grid[0] = 1;
    for (int d = 1; d < 3; d++) s.grid[d] = (s.image[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1) / s.stride[d] + 1;
    int64_t channels = image->dims[image->ndim - 3], batch = image->ndim == 4 ? image->dims[0] : 1;
    double *pixels = fold ? es_doubles(image->numel) : em_read_reals(image), *lines = fold ? em_read_reals(columns) : es_doubles(columns->numel);
    for (int64_t n = 0; n < batch; n++) slide(&s, channels, pixels + n * channels * volume(s.image), lines + n * channels * volume(s.kernel) * volume(s.grid), fold);
    if (fold) em_write_reals(image, pixels);
    else em_write_reals(columns, lines);
    free(pixels);
    free(lines);
}

static aclnnStatus im2col(aclOpExecutor *ex, const aclTensor *image, const aclTensor *columns, const aclIntArray *kernel, const aclIntArray *dilation,
                          const aclIntArray *padding, const aclIntArray *stride, bool fold) {
    EM_NOT_NULL(image);
    EM_NOT_NULL(columns);
    EM_NOT_NULL(kernel);
    EM_NOT_NULL(dilation);
    EM_NOT_NULL(padding);
    EM_NOT_NULL(stride);
    ES_DTYPE(image, ES_REALS);
    ES_SAME_DTYPE(image, columns);
    EM_REQUIRE(image->ndim == 3 || image->ndim == 4, "the image must have 3 or 4 dimensions");
    EM_REQUIRE(fits(kernel, 2, 1) && fits(dilation, 2, 1) && fits(padding, 2, 0) && fits(stride, 2, 1), "kernelSize, dilation, padding or stride is not valid");
    int64_t taps = 1, places = 1;
    for (int d = 0; d < 2; d++) {
        int64_t k = kernel->values[kernel->size == 1 ? 0 : d], reach = dilation->values[dilation->size == 1 ? 0 : d] * (k - 1) + 1;
        int64_t padded = image->dims[image->ndim - 2 + d] + 2 * padding->values[padding->size == 1 ? 0 : d];
        EM_REQUIRE(padded >= reach, "the kernel is larger than the padded image");
        taps *= k;
        places *= (padded - reach) / stride->values[stride->size == 1 ? 0 : d] + 1;
    }
    int64_t dims[3] = {image->dims[0], image->dims[image->ndim - 3] * taps, places};
    EM_REQUIRE(es_has_shape(columns, image->ndim - 1, image->ndim == 4 ? dims : dims + 1), "the columns do not have the unfolded shape");
    em_tensor(ex, image);
    em_tensor(ex, columns);
    em_array(ex, stride);
    em_array(ex, padding);
    em_array(ex, dilation);
    em_array(ex, kernel);
    em_integer(ex, fold);
    return em_ready(ex, im2col_kernel, 0);
}

EM_OP(aclnnIm2col, const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *dilation, const aclIntArray *padding, const aclIntArray *stride,
      const aclTensor *out) {
    EM_BEGIN(aclnnIm2col);
    return im2col(ex, self, out, kernelSize, dilation, padding, stride, false);
}

EM_OP(aclnnIm2colBackward, const aclTensor *gradOutput, const aclIntArray *inputSize, const aclIntArray *kernelSize, const aclIntArray *dilation,
      const aclIntArray *padding, const aclIntArray *stride, aclTensor *out) {
    EM_BEGIN(aclnnIm2colBackward);
    EM_NOT_NULL(inputSize);
    EM_NOT_NULL(out);
    EM_REQUIRE(inputSize->size == 2 && out->ndim >= 3 && inputSize->values[0] == out->dims[out->ndim - 2] && inputSize->values[1] == out->dims[out->ndim - 1],
               "out does not have inputSize");
    return im2col(ex, out, gradOutput, kernelSize, dilation, padding, stride, true);
}
