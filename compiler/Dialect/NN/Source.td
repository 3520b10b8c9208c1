// Values that come from nowhere: parameters (by reference) and small constants.
#ifndef HPC_NN_SOURCE
#define HPC_NN_SOURCE
include "compiler/Dialect/NN/Base.td"

def NN_StorageAttr : AttrDef<NN_Dialect, "Storage"> {
  let mnemonic = "storage";
  let summary = "where the numbers of a parameter are stored, and as what";
  let description = [{
    Bytes are `file[offset, offset + bytes)`, row-major in the stored shape. `hashes` has one XXH3-64 per MiB; none where the content was not there to be read (an absent parameter:
    compiling needs shapes, not weights).

        #nn.storage<file = "model.onnx", offset = 120, bytes = 80480, hashes = [7]>

    `starts` in `shape`: the parameter is a part of what is stored, as large as its (global) type. Only hpc-bind-parts makes such.

        #nn.storage<bytes = 6144, shape = [32, 48], starts = [0, 32]>

    `type`: the element type of what is stored, where it is another one. It is f32, and rounded to 16 bits once, when it is bound (hpc-bind-casts); or it has 16 bits, and is trained in
    f32 (hpc-build-gradients); or it is bytes, and read as floats of 16 bits, which hold them exactly.

    `int8_along = D`: the value is that of int8 numbers, code * scale, with a scale for every line along dim D of what is stored (runtime/base/Int8.h). What is cut or taken of it later is
    cut of that value. hpc-quantize-weights makes such; hpc-bind-int8 makes of them the codes (tensors of i8), and the scales: f32, without dim D, whose size in what is stored is
    `int8_size`, and which `shape` and `starts` lack too.

    Constraints: (C1) no number is negative. (C2) one hash per MiB of `bytes`, or none. (C3) `starts` and `shape` come together, with a number for each dim, and no start lies beyond its
    dim. (C4) `int8_size` stands beside `int8_along`.
  }];
  let parameters = (ins OptionalParameter<"::mlir::StringAttr">:$file, DefaultValuedParameter<"int64_t", "0">:$offset, DefaultValuedParameter<"int64_t", "0">:$bytes,
      OptionalParameter<"::mlir::DenseI64ArrayAttr">:$hashes, OptionalParameter<"::mlir::Type">:$type, OptionalParameter<"::mlir::DenseI64ArrayAttr">:$shape,
      OptionalParameter<"::mlir::DenseI64ArrayAttr">:$starts, OptionalParameter<"::std::optional<int64_t>">:$int8_along, OptionalParameter<"::std::optional<int64_t>">:$int8_size);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def NN_ParameterOp : NN_Op<"parameter", [Pure, StructureOpInterface, HPC_Structure<"Source", "None">]> {
  let summary = "a weight, by reference";
  let description = [{
    Its numbers are where `stored` says, or `value` where no file has them in a mappable form. After partition the type is the local box; the stored shape is then the global shape of the
    encoding.

        %w = nn.parameter "transformer.wte.weight" stored <file = "model.onnx", offset = 120, bytes = 80480, hashes = [7]> : tensor<503x40xf32>
        %q = nn.parameter "qkv" stored <bytes = 6144, shape = [32, 48], starts = [0, 32]> : tensor<32x8xf32>
        %w = nn.parameter "wte" stored <bytes = 80480, type = f32> : tensor<503x40xbf16>
        %w = nn.parameter "fc" stored <bytes = 6144, int8_along = 0> : tensor<32x48xf32>
        %c = nn.parameter "fc" stored <bytes = 6144, type = f32, int8_along = 0> : tensor<32x48xi8>
        %s = nn.parameter "fc" stored <bytes = 6144, int8_along = 0, int8_size = 32> : tensor<48xf32>

    Names:
    - `aliases`: its other names: initializers with the same content, module paths of its consumers. `transposed_aliases`: those whose stored bytes are its own, transposed (rank 2), and
      who speaks of dims by such a name means them the other way round.
    - `tied_names`: parameters that it was taken for, since they hold the same numbers, transposed perhaps.
    - `apart_as`: it holds the same numbers as another one that the file says is another parameter, and trains apart: the names of what it comes from.
    - `made_of`: values from which an exporter has computed it, and which the file no longer holds: a table of cosines, a weight that was cut or expanded.
    - `state_names`: its names in the framework's own state (PyTorch's state_dict), where these are several, or another than its own. `is_made`: an exporter made it of the one of its state
      names, which may be transposed. `is_exporters`: an exporter made it and no state has it: a mask, a table of cosines.
    - `is_statistic`: no gradient changes it: a batch norm's mean, how much each class counts in a loss, a buffer.

    Constraints: (C1) the stored shape's bytes, of elements as they are stored, equal `bytes`. (C2) `value`, or a place in a file, not both. (C3) a part has the rank of the parameter and
    lies within the stored shape. (C4) of the stored type and the type one is f32, the other f16 or bf16; or the stored type is an integer of 8 bits, the type f16 or bf16; or the parameter
    is the codes of an f32. (C5) `int8_along` is a dim of what is stored, which is f32; scales are stored as what they are.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<NN_StorageAttr>:$storage, OptionalAttr<ElementsAttr>:$value,
      OptionalAttr<StrArrayAttr>:$aliases, OptionalAttr<StrArrayAttr>:$transposed_aliases, OptionalAttr<StrArrayAttr>:$tied_names,
      OptionalAttr<StrArrayAttr>:$apart_as, OptionalAttr<StrArrayAttr>:$made_of, OptionalAttr<StrArrayAttr>:$state_names,
      UnitAttr:$is_made, UnitAttr:$is_exporters, UnitAttr:$is_statistic);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$name (`stored` $storage^)? attr-dict `:` type($result)";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type, "::llvm::StringRef":$name, "const ::hpc::nn::Storage &":$storage)>,
                  OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::ElementsAttr":$value)>];
  let extraClassDeclaration = [{
    /// As data, to be changed and set again.
    ::hpc::nn::Storage stored();
    void setStored(const ::hpc::nn::Storage &storage);
    ::llvm::StringRef getFile();
    int64_t getOffset();
    int64_t getBytes();
    ::llvm::ArrayRef<int64_t> getHashes();
    ::std::optional<::llvm::ArrayRef<int64_t>> getStoredShape();
    ::std::optional<::llvm::ArrayRef<int64_t>> getPartStarts();
    ::std::optional<::mlir::Type> getStoredType();
    ::std::optional<int64_t> getInt8Along();
    ::std::optional<int64_t> getInt8Size();
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
