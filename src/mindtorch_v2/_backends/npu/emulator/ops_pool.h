/* Kernels of pooling over two and over three dimensions; see ops_pool_kernels.c for the tensors, arrays and integers that they take. */
#ifndef EM_OPS_POOL_H
#define EM_OPS_POOL_H

#include "ops_shape.h"

void em_pool_average(EmCall *call);
void em_pool_maximum(EmCall *call);
void em_pool_placed(EmCall *call);

#endif
