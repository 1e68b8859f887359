/* SPDX-License-Identifier: Apache-2.0
 * Jobs of oneDNN: primitives with what they are executed with. Memories have no buffers: each call
 * tells where the tensors lie, and what else a job needs lies in the call's scratch. */
#ifndef DEV_CPU_DNNL_JOB_H
#define DEV_CPU_DNNL_JOB_H

#include <oneapi/dnnl/dnnl.h>

#include "dev/cpu/dnnl_glue.h"
#include "graph/pack.h"

#define JOB_TENSORS 4 /* of a primitive: x, weight, bias, y */

/* One primitive with everything it is executed with. */
struct job_step {
    dnnl_primitive_t primitive;
    int n_args;
    dnnl_exec_arg_t arg[JOB_TENSORS + 1];
};

/* Where a memory lies: input `index` of the call, its output 0, or its scratch from `offset` on. */
struct job_memory {
    dnnl_memory_t memory;
    enum { JOB_INPUT, JOB_OUTPUT, JOB_SCRATCH } kind;
    int index;
    size_t offset;
};

/* Steps: reorders of inputs, the primitive, the reorder of the output. */
struct dnnl_job {
    dnnl_stream_t stream;
    int n_steps, n_memories;
    struct job_step step[JOB_TENSORS + 1];
    struct job_memory memory[3 * JOB_TENSORS + 2];
    size_t scratch;
};

/* A tensor of the primitive as the caller has it: the argument's number, which input it is (-1:
 * output 0), and how it lies. */
struct job_tensor {
    int arg, input;
    dnnl_memory_desc_t outside;
};

/* Opens oneDNN and keeps it to one thread until job_end, which takes what this gave. */
tri_status job_begin(int *threads);
void job_end(int threads);

dnnl_engine_t job_engine(void);
const_dnnl_primitive_attr_t job_attributes(void); /* strict fp32, scratchpads are ours */
dnnl_data_type_t job_type(const tri_spec *s);
/* TRI_OK for success; else the message. */
tri_status job_failed(const tri_node *n, const char *what, dnnl_status_t status);

/* How a tensor lies, for oneDNN and for us; false if our words do not suffice (padding). */
void job_md(const struct pack *p, int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
            dnnl_memory_desc_t *md);
bool job_pack(const dnnl_memory_desc_t *md, struct pack *p);

/* A job of the primitive described, with the reorders that it needs around it. */
tri_status job_make(const tri_node *n, const_dnnl_op_desc_t desc,
                    const_dnnl_primitive_desc_t hint, int n_tensors, const struct job_tensor *t,
                    struct dnnl_job **out);
tri_status job_make_of(const tri_node *n, const_dnnl_primitive_desc_t pd, int n_tensors,
                       const struct job_tensor *t, struct dnnl_job **out);
tri_status job_make_reorder(const tri_node *n, const dnnl_memory_desc_t *from,
                            const dnnl_memory_desc_t *to, struct dnnl_job **out);

#endif
