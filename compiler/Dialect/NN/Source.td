// Values that come from nowhere: parameters (by reference) and small constants.
#ifndef HPC_NN_SOURCE
#define HPC_NN_SOURCE
include "compiler/Dialect/NN/Base.td"

def NN_ParameterOp : NN_Op<"parameter", [Pure, StructureOpInterface, HPC_Structure<"Source", "None">]> {
  let summary = "a weight, by reference";
  let description = [{
    Its bytes are `file[offset, offset+bytes)`, row-major in the stored shape, or `value` when it is stored in no mappable form. `hashes` has one XXH3-64 per
    MiB; none where the content was not there to be read (an absent parameter: compiling needs shapes, not weights). `aliases` are its other names: initializers with the same content, module paths of its consumers.
    After partition the type is the local box; the stored shape is then the global shape of the encoding.

        %w = nn.parameter "transformer.wte.weight" {file = "model.onnx", offset = 120 : i64, bytes = 80480 : i64, hashes = array<i64: 7>} : tensor<503x40xf32>

    `part_starts` in `stored_shape`: it is only a part of what is stored, as large as its (global) type. Only hpc-bind-parts makes such.

        %q = nn.parameter "qkv" {bytes = 6144 : i64, ..., part_starts = array<i64: 0, 32>, stored_shape = array<i64: 32, 48>} : tensor<32x8xf32>

    `stored_type`: it is stored as f32, and rounded to 16 bits once, when it is bound (hpc-bind-casts makes such); or it is stored in 16 bits, and trained in f32 (hpc-build-gradients); or it is stored in bytes, and read as
    floats of 16 bits, which hold them exactly.

        %w = nn.parameter "wte" {bytes = 80480 : i64, ..., stored_type = f32} : tensor<503x40xbf16>

    Constraints: (C1) the stored shape's bytes, of elements as they are stored, equal `bytes`. (C2) one hash per MiB, or none. (C3) `file` or `value`, not both. (C4) a part has a start
    in each dim and lies within the stored shape. (C5) of `stored_type` and the type one is f32, the other f16 or bf16; or `stored_type` is an integer of 8 bits, the type f16 or bf16.
  }];
  let arguments = (ins StrAttr:$name, DefaultValuedStrAttr<StrAttr, "">:$file, DefaultValuedAttr<I64Attr, "0">:$offset,
      DefaultValuedAttr<I64Attr, "0">:$bytes, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$hashes,
      OptionalAttr<ElementsAttr>:$value, OptionalAttr<StrArrayAttr>:$aliases,
      OptionalAttr<DenseI64ArrayAttr>:$stored_shape, OptionalAttr<DenseI64ArrayAttr>:$part_starts,
      OptionalAttr<TypeAttr>:$stored_type);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// Nobody knows what it holds, only where that will be.
    bool isAbsent() { return !getValue() && getBytes() > 0 && getHashes().empty(); }
    bool isPart() { return getStoredShape().has_value(); }
    /// The element type of what is stored.
    ::mlir::Type storedElementType();
  }];
  let hasVerifier = 1;
}

def NN_ConstantOp : NN_Op<"constant", [Pure, ConstantLike, StructureOpInterface, HPC_Structure<"Source", "None">]> {
  let summary = "a small constant";
  let description = [{
        %c = nn.constant dense<5.000000e-01> : tensor<f32>

    Constraints: (C1) shape and element type of `value` are those of the result.
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::DenseElementsAttr":$value), [{ build($_builder, $_state, value.getType(), value); }]>];
  let hasFolder = 1;
  let hasVerifier = 1;
}
#endif
