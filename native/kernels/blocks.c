/* Programs of loops over blocks: checking one, and running it. */
#include "blocks.h"

#include <stdint.h>

/* ------------------------------------------------------------------------------------------------------------- checking */

static int wrong(const char *text, int at)
{
    PyErr_Format(PyExc_ValueError, "program: %s (%d)", text, at);
    return -1;
}

/* The operand's dimensions, outermost first, without those of one element and with neighbours put together that follow each other. */
static void put_together(BlockArray *operand, int ndim, const npy_intp *dims, const npy_intp *strides)
{
    operand->ndim = 0;
    for (int d = 0; d < ndim; d++) {
        if (dims[d] == 1) {
            continue;
        }
        int last = operand->ndim - 1;
        if (last >= 0 && operand->strides[last] == strides[d] * dims[d]) {
            operand->dims[last] *= dims[d];
            operand->strides[last] = strides[d];
        }
        else {
            operand->dims[operand->ndim] = dims[d];
            operand->strides[operand->ndim++] = strides[d];
        }
    }
}

/* How an array is read, or written, over the iteration space. */
static int place(BlockProgram *program, int at, int ndim, const npy_intp *dims, PyArrayObject *array)
{
    BlockArray *operand = &program->array[at];
    int is_bool = PyArray_DESCR(array)->type_num == NPY_BOOL, width = is_bool ? 1 : float_width(array);
    if (width != 1 && width != program->width) {
        PyErr_Format(PyExc_TypeError, "program: array %d has elements that are neither bool nor floats of %d bytes", at, program->width);
        return -1;
    }
    operand->data = PyArray_BYTES(array);
    operand->item = width;
    int output = at >= program->outputs;
    if (output && !PyArray_ISWRITEABLE(array)) {
        return wrong("an output is read-only", at);
    }
    if (PyArray_NDIM(array) == 0 && !output) {
        operand->kind = BLOCK_NUMBER;
        return 0;
    }
    if (PyArray_NDIM(array) != ndim || !PyArray_CompareLists(PyArray_DIMS(array), dims, ndim)) {
        return wrong("an array has another shape than the program", at);
    }
    put_together(operand, ndim, dims, PyArray_STRIDES(array));
    operand->kind = is_contiguous(array) ? BLOCK_DENSE : BLOCK_STRIDED;
    if (output && operand->kind != BLOCK_DENSE) {
        return wrong("an output is not contiguous", at);
    }
    if (operand->ndim == 0 && operand->kind == BLOCK_STRIDED) { /* one element, not aligned */
        operand->dims[operand->ndim] = 1;
        operand->strides[operand->ndim++] = width;
    }
    return 0;
}

/* The bytes between which an operand lies. */
static void extent(const BlockArray *operand, const char **from, const char **to)
{
    *from = *to = operand->data;
    for (int d = 0; d < operand->ndim; d++) {
        npy_intp reach = (operand->dims[d] - 1) * operand->strides[d];
        *(reach < 0 ? from : to) += reach;
    }
    *to += operand->item;
}

/* An output shares no memory with another array, unless that is an input of the very same elements. */
static int check_overlap(const BlockProgram *program)
{
    for (int k = program->outputs; k < program->arrays; k++) {
        const char *from, *to, *other, *end;
        extent(&program->array[k], &from, &to);
        for (int i = 0; i < k; i++) {
            const BlockArray *input = &program->array[i];
            extent(input, &other, &end);
            int alike = input->kind == BLOCK_DENSE || (input->kind == BLOCK_NUMBER && program->n == 1);
            int same = i < program->outputs && alike && other == from && input->item == program->array[k].item;
            if (from < end && other < to && !same) {
                return wrong("an output shares memory with another array", k);
            }
        }
    }
    return 0;
}

static int find_loop(BlockProgram *program, BlockStep *step, const char *is_number)
{
    unsigned numbers = 0;
    for (int k = 0; k < step->count; k++) {
        numbers |= (unsigned)is_number[step->sources[k]] << k;
    }
    const char *kinds = block_entries[step->opcode].kinds;
    for (int k = 0; k < step->count; k++) {
        if (kinds[k] == 'S' && !(numbers >> k & 1)) {
            return wrong("an operand must be a number", k);
        }
        numbers &= kinds[k] == 'S' ? ~(1u << k) : ~0u;
    }
    step->loop = block_loop(step->opcode, program->width, numbers);
    step->filled = step->loop == NULL ? numbers : 0;
    if (step->loop == NULL) {
        step->loop = block_loop(step->opcode, program->width, 0);
    }
    return 0;
}

/* What each instruction reads was written before, what it writes may be written, and an input whose memory an output has taken is not read again. */
static int check_steps(BlockProgram *program, char *is_written, const char *is_number)
{
    int first = program->arrays, last = first + program->temporaries, slots = last + program->immediates;
    for (int s = 0; s < slots; s++) {
        is_written[s] = s < program->outputs || s >= last;
    }
    for (int i = 0; i < program->steps; i++) {
        BlockStep *step = &program->step[i];
        if (step->opcode < 0 || step->opcode >= block_count) {
            return wrong("no such operation", step->opcode);
        }
        if (step->count != (int)strlen(block_entries[step->opcode].kinds)) {
            return wrong("an operation with another number of operands", i);
        }
        for (int k = 0; k < step->count; k++) {
            int source = step->sources[k];
            if (source < 0 || source >= slots) {
                return wrong("no such slot", source);
            }
            if (!is_written[source]) {
                return wrong("a slot is read that holds nothing, or no longer what it held", source);
            }
        }
        if (step->target < program->outputs || step->target >= last) {
            return wrong("an instruction writes to what is no output and no temporary", step->target);
        }
        if (find_loop(program, step, is_number) < 0) {
            return -1;
        }
        is_written[step->target] = 1;
        if (step->target < program->arrays) {
            for (int s = 0; s < program->outputs; s++) {
                if (program->array[s].kind != BLOCK_NUMBER && program->array[s].data == program->array[step->target].data) {
                    is_written[s] = 0;
                }
            }
        }
    }
    for (int s = program->outputs; s < program->arrays; s++) {
        if (!is_written[s]) {
            return wrong("an output is never written", s);
        }
    }
    return 0;
}

/* Which slots need a block of their own in each thread. */
static void give_buffers(BlockProgram *program, const char *is_number)
{
    int slots = program->arrays + program->temporaries + program->immediates;
    for (int s = 0; s < slots; s++) {
        int own = s >= program->arrays && !is_number[s];
        if (s < program->arrays && !is_number[s]) {
            own = program->array[s].kind == BLOCK_STRIDED || program->array[s].item != program->width;
        }
        program->buffer[s] = own ? program->buffers++ : -1;
    }
    for (int i = 0; i < program->steps; i++) {
        const BlockStep *step = &program->step[i];
        for (int k = 0; k < step->count; k++) {
            if (step->filled >> k & 1 && program->buffer[step->sources[k]] < 0) {
                program->buffer[step->sources[k]] = program->buffers++;
            }
        }
    }
}

static int finish(BlockProgram *program)
{
    char is_written[BLOCK_SLOTS], is_number[BLOCK_SLOTS];
    int slots = program->arrays + program->temporaries + program->immediates;
    for (int s = 0; s < slots; s++) {
        is_number[s] = s >= program->arrays + program->temporaries || (s < program->arrays && program->array[s].kind == BLOCK_NUMBER);
    }
    if (check_overlap(program) < 0 || check_steps(program, is_written, is_number) < 0) {
        return -1;
    }
    give_buffers(program, is_number);
    return 0;
}

BlockProgram *block_program(int width, int ndim, const npy_intp *dims, int arrays, PyArrayObject *const *array, int outputs, int temporaries,
                            int immediates, const double *immediate, int steps, const BlockStep *step)
{
    if ((width != 4 && width != 8) || ndim < 0 || ndim > MAX_DIMS) {
        wrong("elements have 4 or 8 bytes, and there are not so many dimensions", ndim);
        return NULL;
    }
    if (arrays < 1 || outputs < 0 || outputs >= arrays || temporaries < 0 || immediates < 0 || steps < 1 || arrays > BLOCK_SLOTS ||
        temporaries > BLOCK_SLOTS || immediates > BLOCK_SLOTS || arrays + temporaries + immediates > BLOCK_SLOTS) {
        wrong("there must be an output and an instruction, and no more slots than", BLOCK_SLOTS);
        return NULL;
    }
    npy_intp n = 1;
    for (int d = 0; d < ndim; d++) {
        if (dims[d] < 0 || (dims[d] != 0 && n > NPY_MAX_INTP / 16 / dims[d])) {
            wrong("a dimension is negative or too large", d);
            return NULL;
        }
        n *= dims[d];
    }
    size_t slots = (size_t)(arrays + temporaries + immediates);
    size_t size = sizeof(BlockProgram) + (size_t)arrays * sizeof(BlockArray) + (size_t)immediates * sizeof(double) +
                  (size_t)steps * sizeof(BlockStep) + slots * sizeof(int);
    BlockProgram *program = PyMem_Calloc(1, size);
    if (program == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    program->array = (BlockArray *)(program + 1);
    program->immediate = (double *)(program->array + arrays);
    program->step = (BlockStep *)(program->immediate + immediates);
    program->buffer = (int *)(program->step + steps);
    program->width = width;
    program->n = n;
    program->blocks = (n + BLOCK - 1) / BLOCK;
    program->arrays = arrays;
    program->outputs = outputs;
    program->temporaries = temporaries;
    program->immediates = immediates;
    program->steps = steps;
    memcpy(program->step, step, (size_t)steps * sizeof(BlockStep));
    if (immediates) {
        memcpy(program->immediate, immediate, (size_t)immediates * sizeof(double));
    }
    for (int i = 0; i < arrays; i++) {
        program->array[i].array = (PyArrayObject *)Py_NewRef((PyObject *)array[i]);
    }
    for (int i = 0; i < arrays; i++) {
        if (place(program, i, ndim, dims, array[i]) < 0) {
            block_free(program);
            return NULL;
        }
    }
    if (finish(program) < 0) {
        block_free(program);
        return NULL;
    }
    return program;
}

void block_free(BlockProgram *program)
{
    for (int i = 0; i < program->arrays; i++) {
        Py_XDECREF((PyObject *)program->array[i].array);
    }
    PyMem_Free(program);
}

/* -------------------------------------------------------------------------------------------------------------- running */

/* `count` elements of a strided operand, `stride` bytes apart, to a block of T. */
static void copy_run(const char *from, npy_intp stride, int item, char *to, int width, npy_intp count)
{
    if (item == 1) {
        for (npy_intp i = 0; i < count; i++) {
            int set = from[i * stride] != 0;
            if (width == 4) {
                ((float *)to)[i] = (float)set;
            }
            else {
                ((double *)to)[i] = (double)set;
            }
        }
    }
    else if (stride == width) {
        memcpy(to, from, (size_t)(count * width));
    }
    else if (width == 4) {
        uint32_t *target = (uint32_t *)to, value;
        if (stride == 0) {
            memcpy(&value, from, 4);
            for (npy_intp i = 0; i < count; i++) {
                target[i] = value;
            }
            return;
        }
        for (npy_intp i = 0; i < count; i++) {
            memcpy(&target[i], from + i * stride, 4);
        }
    }
    else {
        uint64_t *target = (uint64_t *)to, value;
        if (stride == 0) {
            memcpy(&value, from, 8);
            for (npy_intp i = 0; i < count; i++) {
                target[i] = value;
            }
            return;
        }
        for (npy_intp i = 0; i < count; i++) {
            memcpy(&target[i], from + i * stride, 8);
        }
    }
}

/* The elements from `start` on of an operand, in the order of the iteration space, to a block of T. */
static void gather(const BlockArray *operand, npy_intp start, npy_intp count, char *to, int width)
{
    npy_intp at[MAX_DIMS];
    const char *from = operand->data;
    int last = operand->ndim - 1;
    for (int d = last; d >= 0; d--) {
        at[d] = start % operand->dims[d];
        start /= operand->dims[d];
        from += at[d] * operand->strides[d];
    }
    while (count > 0) {
        npy_intp run = operand->dims[last] - at[last];
        run = run < count ? run : count;
        copy_run(from, operand->strides[last], operand->item, to, width, run);
        to += run * width;
        count -= run;
        at[last] += run;
        from += run * operand->strides[last];
        for (int d = last; d > 0 && at[d] == operand->dims[d]; d--) {
            from += operand->strides[d - 1] - operand->dims[d] * operand->strides[d];
            at[d] = 0;
            at[d - 1]++;
        }
    }
}

static void store_truth(const char *from, int width, char *to, npy_intp count)
{
    if (width == 4) {
        for (npy_intp i = 0; i < count; i++) {
            to[i] = ((const float *)from)[i] != 0;
        }
    }
    else {
        for (npy_intp i = 0; i < count; i++) {
            to[i] = ((const double *)from)[i] != 0;
        }
    }
}

/* The value of a slot that is a number, as T. */
static void read_number(const BlockProgram *program, int slot, double *value)
{
    int first = program->arrays + program->temporaries;
    if (slot >= first) {
        *value = program->immediate[slot - first];
        if (program->width == 4) {
            float narrow = (float)*value;
            memcpy(value, &narrow, 4);
        }
        return;
    }
    const BlockArray *array = &program->array[slot];
    copy_run(array->data, 0, array->item, (char *)value, program->width, 1);
}

/* One thread's part of a run. */
typedef struct {
    BlockProgram *program;
    char *buffers;
    double numbers[BLOCK_SLOTS]; /* the values of those slots that are numbers, as T */
    const char *at[BLOCK_SLOTS]; /* where each slot is for the present block */
} Worker;

/* From one buffer to the next: not a whole number of pages, in which they would claim the same places of the first cache. */
static inline size_t buffer_step(const BlockProgram *program)
{
    return BLOCK * (size_t)program->width + 320;
}

static inline char *buffer_of(const Worker *worker, int slot)
{
    return worker->buffers + (size_t)worker->program->buffer[slot] * buffer_step(worker->program);
}

static void prepare(Worker *worker, npy_intp longest)
{
    const BlockProgram *program = worker->program;
    int temporaries = program->arrays + program->temporaries, slots = temporaries + program->immediates;
    for (int s = 0; s < slots; s++) {
        if (s < temporaries && !(s < program->arrays && program->array[s].kind == BLOCK_NUMBER)) {
            worker->at[s] = program->buffer[s] < 0 ? NULL : buffer_of(worker, s);
            continue;
        }
        read_number(program, s, &worker->numbers[s]);
        worker->at[s] = (const char *)&worker->numbers[s];
        if (program->buffer[s] >= 0) {
            copy_run(worker->at[s], 0, program->width, buffer_of(worker, s), program->width, longest);
        }
    }
}

/* Elements from which a program's arrays are not in the cache anyway, and instructions from which the processor does not by itself fetch them soon enough. */
#define FETCH_FROM 131072
#define FETCH_STEPS 3

/* The part of the next block that is fetched while instruction `at` computes, so that memory and processor work at the same time. */
static inline void fetch_ahead(const BlockProgram *program, npy_intp start, int at)
{
    npy_intp from = start + BLOCK + BLOCK * at / program->steps, to = start + BLOCK + BLOCK * (at + 1) / program->steps;
    to = to < program->n ? to : program->n;
    for (int s = 0; s < program->arrays; s++) {
        const BlockArray *array = &program->array[s];
        for (npy_intp byte = from * array->item; array->kind == BLOCK_DENSE && byte < to * array->item; byte += 64) {
            if (s < program->outputs) {
                __builtin_prefetch(array->data + byte, 0, 2);
            }
            else {
                __builtin_prefetch(array->data + byte, 1, 3);
            }
        }
    }
}

static void run_block(Worker *worker, npy_intp start, npy_intp count)
{
    const BlockProgram *program = worker->program;
    int width = program->width;
    for (int s = 0; s < program->arrays; s++) {
        const BlockArray *array = &program->array[s];
        if (array->kind == BLOCK_NUMBER) {
            continue;
        }
        if (program->buffer[s] < 0) {
            worker->at[s] = array->data + start * width;
        }
        else if (s < program->outputs) {
            if (array->kind == BLOCK_DENSE) {
                copy_run(array->data + start * array->item, array->item, array->item, buffer_of(worker, s), width, count);
            }
            else {
                gather(array, start, count, buffer_of(worker, s), width);
            }
        }
    }
    for (int i = 0; i < program->steps; i++) {
        const BlockStep *step = &program->step[i];
        if (program->n >= FETCH_FROM && program->steps >= FETCH_STEPS) {
            fetch_ahead(program, start, i);
        }
        const void *sources[BLOCK_SOURCES];
        for (int k = 0; k < step->count; k++) {
            int slot = step->sources[k];
            sources[k] = step->filled >> k & 1 ? buffer_of(worker, slot) : worker->at[slot];
        }
        step->loop(sources, (void *)worker->at[step->target], count);
    }
    for (int s = program->outputs; s < program->arrays; s++) {
        if (program->buffer[s] >= 0) {
            store_truth(worker->at[s], width, program->array[s].data + start, count);
        }
    }
}

static npy_intp run_blocks(BlockProgram *program)
{
    Worker worker;
    worker.program = program;
    npy_intp longest = program->n < BLOCK ? program->n : BLOCK, done = 0;
    char *memory = NULL;
    if (program->buffers) {
        /* Room to begin at a cache line: loops of wide vectors are slower across two. */
        memory = PyMem_RawMalloc((size_t)program->buffers * buffer_step(program) + 64);
        if (memory == NULL) {
            return -1;
        }
        worker.buffers = (char *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    }
    prepare(&worker, longest);
    for (;;) {
        npy_intp block = __atomic_fetch_add(&program->next, 1, __ATOMIC_RELAXED);
        if (block >= program->blocks) {
            break;
        }
        npy_intp start = block * BLOCK, left = program->n - start;
        run_block(&worker, start, left < BLOCK ? left : BLOCK);
        done++;
    }
    PyMem_RawFree(memory);
    return done;
}

/* What several threads do of a program: they claim blocks whatever part they are given. */
typedef struct {
    BlockProgram *program;
    npy_intp done; /* atomic; negative when memory was missing */
} Crew;

static void run_crew(void *work, npy_intp begin, npy_intp end)
{
    (void)begin;
    (void)end;
    Crew *crew = work;
    npy_intp done = run_blocks(crew->program);
    __atomic_add_fetch(&crew->done, done < 0 ? NPY_MIN_INTP / 2 : done, __ATOMIC_RELAXED);
}

npy_intp block_run(BlockProgram *program)
{
    npy_intp done;
    if (__atomic_load_n(&program->next, __ATOMIC_RELAXED) >= program->blocks) {
        return 0;
    }
    if (program->n >= RELEASE_GIL) {
        Crew crew = {program, 0};
        Py_BEGIN_ALLOW_THREADS
        in_parts(run_crew, &crew, program->blocks, PART_ELEMENTS / 2 / BLOCK);
        Py_END_ALLOW_THREADS
        done = crew.done;
    }
    else {
        done = run_blocks(program);
    }
    if (done < 0) {
        PyErr_NoMemory();
    }
    return done;
}
