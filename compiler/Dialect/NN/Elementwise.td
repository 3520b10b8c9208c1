// Elementwise ops, NumPy broadcasting. A new one costs a line here, one in ElementwiseGradients.cpp unless it has no
// derivative (then its traits are []), one in compiler/Interpreter/Elementwise.cpp, one in
// passes/Kernels/Elements/ScalarEmitter.cpp and one in compiler/Import/OnnxOps; tests name the table that forgot it.
#ifndef HPC_NN_ELEMENTWISE
#define HPC_NN_ELEMENTWISE
include "compiler/Dialect/NN/Base.td"

/// `effort`: Cheap or Expensive. `linear`: operands through which a partial sum may pass, as the C++ initializer of a
/// LinearClause.
class NN_Elementwise<string mnemonic, string effort, string linear, list<Trait> traits = []>
    : NN_ComputeOp<mnemonic, "Elementwise", effort, !listconcat([LeadingDimsOpInterface], traits)> {
  let extraClassDefinition = [{
    ::hpc::ShardingRule $cppClass::getShardingRule() { return ::hpc::elementwiseRule(getOperation(), }] # linear # [{); }
    ::llvm::LogicalResult $cppClass::verify() { return ::hpc::nn::verifyElementwise(getOperation()); }
  }];
  let hasVerifier = 1;
}

class NN_Unary<string mnemonic, string effort, string linear = "{}", list<Trait> traits = [NN_Differentiable]>
    : NN_Elementwise<mnemonic, effort, linear, traits> {
  let summary = "elementwise " # mnemonic;
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$operand), [{ build($_builder, $_state, operand.getType(), operand); }]>];
}
/// Unary with a boolean result.
class NN_Predicate<string mnemonic> : NN_Unary<mnemonic, "Cheap", "{}", []> {
  let builders = [OpBuilder<(ins "::mlir::Value":$operand), [{
    build($_builder, $_state, ::hpc::nn::broadcastType({operand}, $_builder.getI1Type()), operand); }]>];
}
class NN_Binary<string mnemonic, string effort, string linear = "{}", list<Trait> traits = [NN_Differentiable]>
    : NN_Elementwise<mnemonic, effort, linear, traits> {
  let summary = "elementwise " # mnemonic # " with broadcasting";
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs), [{
    build($_builder, $_state, ::hpc::nn::broadcastType({lhs, rhs}), lhs, rhs); }]>];
}

def NN_NegOp : NN_Unary<"neg", "Cheap", "{::hpc::LinearClause::Sum, {0}}">;
def NN_AbsOp : NN_Unary<"abs", "Cheap">;
def NN_ExpOp : NN_Unary<"exp", "Expensive">;
def NN_LogOp : NN_Unary<"log", "Expensive">;
def NN_SqrtOp : NN_Unary<"sqrt", "Expensive">;
def NN_ReciprocalOp : NN_Unary<"reciprocal", "Expensive">;
def NN_TanhOp : NN_Unary<"tanh", "Expensive">;
def NN_ErfOp : NN_Unary<"erf", "Expensive">;
def NN_SinOp : NN_Unary<"sin", "Expensive">;
def NN_CosOp : NN_Unary<"cos", "Expensive">;
def NN_TanOp : NN_Unary<"tan", "Expensive">;
def NN_AsinOp : NN_Unary<"asin", "Expensive">;
def NN_AcosOp : NN_Unary<"acos", "Expensive">;
def NN_AtanOp : NN_Unary<"atan", "Expensive">;
def NN_SinhOp : NN_Unary<"sinh", "Expensive">;
def NN_CoshOp : NN_Unary<"cosh", "Expensive">;
def NN_AsinhOp : NN_Unary<"asinh", "Expensive">;
def NN_AcoshOp : NN_Unary<"acosh", "Expensive">;
def NN_AtanhOp : NN_Unary<"atanh", "Expensive">;
def NN_SigmoidOp : NN_Unary<"sigmoid", "Expensive">;
def NN_ReluOp : NN_Unary<"relu", "Cheap">;
def NN_FloorOp : NN_Unary<"floor", "Cheap">;
def NN_CeilOp : NN_Unary<"ceil", "Cheap">;
def NN_RoundOp : NN_Unary<"round", "Cheap">; // to nearest, ties to even
def NN_SignOp : NN_Unary<"sign", "Cheap">;
def NN_DetachOp : NN_Unary<"detach", "Cheap", "{::hpc::LinearClause::Sum, {0}}">; // its operand; hpc-build-gradients stops here, and removes it
def NN_NotOp : NN_Unary<"not", "Cheap", "{}", []>;
def NN_IsNanOp : NN_Predicate<"is_nan">;
def NN_IsInfOp : NN_Predicate<"is_inf">;

def NN_AddOp : NN_Binary<"add", "Cheap", "{::hpc::LinearClause::Sum, {0, 1}}">;
def NN_SubOp : NN_Binary<"sub", "Cheap", "{::hpc::LinearClause::Sum, {0, 1}}">;
def NN_MulOp : NN_Binary<"mul", "Cheap", "{::hpc::LinearClause::Product, {0, 1}}">;
def NN_DivOp : NN_Binary<"div", "Expensive", "::hpc::nn::linearInDividend(getOperation())">; // integers truncate as C does
def NN_ModOp : NN_Binary<"mod", "Expensive">; // sign of the divisor (fmod = 0)
def NN_FmodOp : NN_Binary<"fmod", "Expensive">; // sign of the dividend
def NN_PowOp : NN_Binary<"pow", "Expensive">; // result has the base's element type
def NN_MaxOp : NN_Binary<"max", "Cheap">; // NaN propagates
def NN_MinOp : NN_Binary<"min", "Cheap">;
def NN_AndOp : NN_Binary<"and", "Cheap", "{}", []>; // of bits, which for bool is the logic; so are or and xor
def NN_OrOp : NN_Binary<"or", "Cheap", "{}", []>;
def NN_XorOp : NN_Binary<"xor", "Cheap", "{}", []>;
// A count that is negative or no less than the type's bits shifts everything out; a right shift of a signed type fills
// with the sign.
def NN_ShiftLeftOp : NN_Binary<"shift_left", "Cheap", "{}", []>;
def NN_ShiftRightOp : NN_Binary<"shift_right", "Cheap", "{}", []>;

def NN_ComparePredicate : I32EnumAttr<"ComparePredicate", "how two numbers compare", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::hpc::nn";
  let genSpecializedAttr = 0;
}
def NN_ComparePredicateAttr : EnumAttr<NN_Dialect, NN_ComparePredicate, "compare_predicate">;

def NN_CompareOp : NN_Elementwise<"compare", "Cheap", "{}"> {
  let summary = "elementwise comparison, boolean result; every ordered comparison with NaN is false";
  let arguments = (ins NN_ComparePredicateAttr:$predicate, AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let builders = [OpBuilder<(ins "::hpc::nn::ComparePredicate":$predicate, "::mlir::Value":$lhs, "::mlir::Value":$rhs), [{
    build($_builder, $_state, ::hpc::nn::broadcastType({lhs, rhs}, $_builder.getI1Type()), predicate, lhs, rhs); }]>];
}

def NN_SelectOp : NN_ComputeOp<"select", "Elementwise", "Cheap", [LeadingDimsOpInterface, NN_Differentiable]> {
  let summary = "elementwise choice (ONNX Where)";
  let description = [{
    Linear in its branches when the condition is full: both partial, or one of them the literal 0.

        %y = nn.select %mask, %x, %low : tensor<16x16xi1>, tensor<2x4x16x16xf32>, tensor<f32> -> tensor<2x4x16x16xf32>
  }];
  let arguments = (ins AnyRankedTensor:$condition, AnyRankedTensor:$on_true, AnyRankedTensor:$on_false);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` type($on_true) `,` type($on_false) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$condition, "::mlir::Value":$onTrue, "::mlir::Value":$onFalse), [{
    build($_builder, $_state, ::hpc::nn::broadcastType({condition, onTrue, onFalse}, ::mlir::getElementTypeOrSelf(onTrue.getType())), condition, onTrue, onFalse); }]>];
  let hasVerifier = 1;
}

def NN_CastOp : NN_ComputeOp<"cast", "Elementwise", "Cheap", [LeadingDimsOpInterface, NN_Differentiable]> {
  let summary = "elementwise conversion; linear when the result type is a wider float";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def NN_BitcastOp : NN_ComputeOp<"bitcast", "Elementwise", "Cheap", [LeadingDimsOpInterface]> {
  let summary = "the same bits as another element type of the same width";
  let description = [{
        %y = nn.bitcast %x : tensor<4xf32> -> tensor<4xi32>

    Constraints: (C1) the result has the operand's shape. (C2) both element types are numbers of as many bits; i1 is none.
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def NN_GeluOp : NN_Elementwise<"gelu", "Expensive", "{}", [NN_Differentiable]> {
  let summary = "x * Phi(x), by erf or by the tanh approximation";
  let arguments = (ins AnyRankedTensor:$operand, UnitAttr:$tanh_approximation);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}
#endif
