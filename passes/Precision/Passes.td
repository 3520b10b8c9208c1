// The passes of phase precision, in the order in which they run.
#ifndef HPC_PASSES_PRECISION
#define HPC_PASSES_PRECISION
include "mlir/Pass/PassBase.td"

def QuantizeWeights : Pass<"hpc-quantize-weights", "::mlir::ModuleOp"> {
  let summary = "weights of products have the values of int8 numbers, with a scale for each output channel";
  let description = [{
    The right operand of a product, if it is an f32 parameter seen through views, is marked with the dim that the product sums over: along it a line is an output channel, whose scale is its largest
    magnitude / 127, and an element becomes round(element / scale) * scale. Lines are those of the tensor as it is stored, so what an element is follows from no layout. Who else reads
    the parameter (a lookup in a table that is the head's weight too) reads it as it is stored. Matrices that are stacked (experts) have a scale for each column of each.
    hpc-bind-int8 makes codes and scales of them; until then a program sees an f32 parameter. What is smaller than `least`, or is the left operand, stays in float, with a remark.
    A program that trains is refused, and so is one for devices.

        %w = nn.parameter "fc" {...} : tensor<32x48xf32>
        %y = nn.matmul %x, %w : tensor<4x32xf32>, tensor<32x48xf32> -> tensor<4x48xf32>

        %w = nn.parameter "fc" stored <int8_along = 0> : tensor<32x48xf32>
        %y = nn.matmul %x, %w : tensor<4x32xf32>, tensor<32x48xf32> -> tensor<4x48xf32>
  }];
  let options = [Option<"weights", "weights", "std::string", "\"float\"", "float: as the model has them; or int8">,
                 Option<"least", "least", "int64_t", "1024", "numbers of the smallest weight that is held so: below, scales and scaling cost what is saved">];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def NarrowProducts : Pass<"hpc-narrow-products", "::mlir::ModuleOp"> {
  let summary = "products read 16-bit operands and add in f32; what else is computed stays f32";
  let description = [{
    Of every op that says which of its operands are only multiplied (MixedPrecisionOpInterface), those of f32 are rounded to `dtype`: once, where their numbers are made,
    before views of them, so that a weight is rounded as it is stored and what a transpose copies is small. What the op adds and gives stays f32: norms, softmax, biases,
    residuals, losses, and sums over micro-batches; hpc-narrow-reshards rounds terms that ranks of tensor parallelism send. A result that its op completes by itself, and that others read rounded alone, is rounded by the op.
    What a model has in other types is left as it is.

        %y = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>

        %a = nn.cast %x : tensor<4x8xf32> -> tensor<4x8xbf16>
        %b = nn.cast %w : tensor<8x8xf32> -> tensor<8x8xbf16>
        %y = nn.matmul %a, %b : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xf32>
  }];
  let options = [Option<"dtype", "dtype", "std::string", "\"model\"", "model: as the model has it; bf16 or fp16">];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def ExactSums : Pass<"hpc-exact-sums", "::mlir::ModuleOp"> {
  let summary = "sums over what a layout may cut are exact, so that all layouts give the same bits";
  let description = [{
    Numbers that are added are first rounded to a grid of powers of two that no layout changes, in f64, where their sum is exact in any order: over lanes, blocks, ranks, micro-batches, stages.

    - A product of f32: each row of one factor and each column of the other becomes whole numbers of (53 - log2 k) / 2 bits by its own largest element (22 for k = 512). Products
      and their sums then have at most 53 bits. A factor is off by 2^-22 of its row's largest at most, about what sums in f32 lose. Where k is above 512, each factor is two such
      numbers and there are three products: off by 2^-36 at k = 50,000.
    - A reduction likewise, by the largest of what it adds, to 53 - log2 n bits.
    - Over the batch, which micro-batches cut, nobody knows the largest before all are there: terms are two words on fixed grids, 2^-20 and 2^-60 of the number of terms. A term of 2^32 and
      more of them becomes NaN, so the step is skipped and told; sums of one result (losses) have three words, up to 2^70. A product over the batch (a weight's gradient) is one for each row of the batch, then that sum. Rows added into tables, and the norm over
      all parameters (three words), likewise.
    - Composites along rows (norms, softmax, cross entropy) are their definitions first. Attention stays: its keys are cut by no layout, and its kernel is made of nothing else.
      Its gradient gets `whole_sums`: no layout cuts the queries and the heads of a group that it adds up; where the forward pass cuts them, they are gathered.

    Runs when layouts have been found, since they are found from products. Cost: products in f64, two of those sums' bytes between ranks, accumulators of two f64 for each f32, and
    (rows of the batch) x 8 bytes of the largest weight at a time.

        %y = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>

        %p = nn.matmul %xi, %wi : tensor<4x8xf64>, tensor<8x8xf64> -> tensor<4x8xf64>      // xi = round(x * 2^.. / power of two below the row's largest)
        %y = nn.cast ((%p * %units_of_rows) * %units_of_columns) : tensor<4x8xf64> -> tensor<4x8xf32>
  }];
  let options = [Option<"batchDim", "batch-dim", "std::string", "\"\"", "as that of hpc-annotate-batch">];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def BindInt8 : Pass<"hpc-bind-int8", "::mlir::ModuleOp"> {
  let summary = "products read the int8 codes of a weight, and their columns are scaled";
  let description = [{
    Runs in phase kernels behind hpc-fold-transposes, so that a product reads the parameter itself. The scales are whole where the summed dim is cut, so a partial sum is scaled before it is added
    up over ranks. A cast to 16 bits on the way is left out: the codes are exact in them. Where something else reads the parameter, its values are bound as floats.

        %w = nn.parameter "fc" stored <int8_along = 0> : tensor<32x48xf32>
        %y = nn.matmul %x, %w : tensor<4x32xf32>, tensor<32x48xf32> -> tensor<4x48xf32>

        %c = nn.parameter "fc" stored <type = f32, int8_along = 0> : tensor<32x48xi8>
        %s = nn.parameter "fc" stored <int8_along = 0, int8_size = 32> : tensor<48xf32>
        %p = nn.matmul %x, %c : tensor<4x32xf32>, tensor<32x48xi8> -> tensor<4x48xf32>
        %y = nn.mul %p, %s : tensor<4x48xf32>, tensor<48xf32> -> tensor<4x48xf32>
  }];
  let dependentDialects = ["::hpc::nn::NNDialect", "::hpc::dist::DistDialect"];
}

def VerifyPrecision : Pass<"hpc-verify-precision", "::mlir::ModuleOp"> {
  let summary = "check that the dtypes of products follow the policy";
  let description = "No product of f32 operands is left where `dtype` asks for 16 bits.";
  let options = [Option<"dtype", "dtype", "std::string", "\"model\"", "as that of hpc-narrow-products">];
}
#endif
