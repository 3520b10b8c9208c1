// The attribute of a dialect that holds an hpc::ReduceKind. The enum is runtime/base's, so that ops, rules and plans
// share it; ODS makes no enum of its own.
#ifndef HPC_INTERFACES_REDUCEKIND
#define HPC_INTERFACES_REDUCEKIND
include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def HPC_ReduceKindParameter : AttrParameter<"::hpc::ReduceKind", "sum, max, min or prod"> {
  let parser = [{[&]() -> ::mlir::FailureOr<::hpc::ReduceKind> {
    ::llvm::SMLoc loc = $_parser.getCurrentLocation();
    std::string text;
    if (::mlir::failed($_parser.parseKeywordOrString(&text)))
      return ::mlir::failure();
    if (std::optional<::hpc::ReduceKind> kind = ::hpc::reduceKindNamed(text))
      return *kind;
    return $_parser.emitError(loc, "'" + text + "' is no reduction; there are sum, max, min and prod");
  }()}];
  let printer = "$_printer << ::hpc::name($_self)";
}

/// In the manner of EnumAttr: `sum` where an op's format has `$kind`, `#nn<reduce_kind sum>` elsewhere; builders and
/// accessors of ops take and give the enum.
class HPC_ReduceKindAttr<Dialect dialect> : AttrDef<dialect, "ReduceKind"> {
  let summary = "how elements are combined";
  let mnemonic = "reduce_kind";
  let parameters = (ins HPC_ReduceKindParameter:$value);
  let assemblyFormat = "$value";
  let constBuilderCall = dialect.cppNamespace # "::ReduceKindAttr::get($_builder.getContext(), $0)";
  let returnType = "::hpc::ReduceKind";
  let convertFromStorage = "$_self.getValue()";
}
#endif
