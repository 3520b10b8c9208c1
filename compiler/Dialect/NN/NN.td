// The `nn` dialect: serial tensor maths. One family a file; each op's sharding rule stands beside its name.
#ifndef HPC_NN
#define HPC_NN
include "compiler/Dialect/NN/Base.td"
include "compiler/Dialect/NN/Source.td"
include "compiler/Dialect/NN/Elementwise.td"
include "compiler/Dialect/NN/View.td"
include "compiler/Dialect/NN/Window.td"
include "compiler/Dialect/NN/Index.td"
include "compiler/Dialect/NN/Contraction.td"
include "compiler/Dialect/NN/Reduce.td"
include "compiler/Dialect/NN/Order.td"
include "compiler/Dialect/NN/Norm.td"
include "compiler/Dialect/NN/Attention.td"
include "compiler/Dialect/NN/Loss.td"
include "compiler/Dialect/NN/Random.td"
include "compiler/Dialect/NN/Fused.td"
#endif
