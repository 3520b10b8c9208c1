// The passes of phase precision, in the order in which they run.
#ifndef HPC_PASSES_PRECISION
#define HPC_PASSES_PRECISION
include "mlir/Pass/PassBase.td"

def NarrowProducts : Pass<"hpc-narrow-products", "::mlir::ModuleOp"> {
  let summary = "products read 16-bit operands and add in f32; everything else stays f32";
  let description = [{
    Of every op that says which of its operands are only multiplied (MixedPrecisionOpInterface), those of f32 are rounded to `dtype`: once, where their numbers are made,
    before views of them, so that a weight is rounded as it is stored and what a transpose copies is small. What the op adds and gives stays f32: norms, softmax, biases,
    residuals, losses, and sums over ranks and micro-batches. A result that its op completes by itself, and that others read rounded alone, is rounded by the op.
    What a model has in other types is left as it is.

        %y = nn.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>

        %a = nn.cast %x : tensor<4x8xf32> -> tensor<4x8xbf16>
        %b = nn.cast %w : tensor<8x8xf32> -> tensor<8x8xbf16>
        %y = nn.matmul %a, %b : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xf32>
  }];
  let options = [Option<"dtype", "dtype", "std::string", "\"model\"", "model: as the model has it; bf16 or fp16">];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def VerifyPrecision : Pass<"hpc-verify-precision", "::mlir::ModuleOp"> {
  let summary = "check that the dtypes of products follow the policy";
  let description = "No product of f32 operands is left where `dtype` asks for 16 bits.";
  let options = [Option<"dtype", "dtype", "std::string", "\"model\"", "as that of hpc-narrow-products">];
}
#endif
