// Builds the nn program op by op and folds as it goes: an op whose operands are all known is evaluated at once and
// erased. Placeholders represent known values in the graph; a real op that reads one gets it written into the program
// before it. The first error stays; later calls then do harmless work, so that callers need not check every step.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Import/KnownTensor.h"
#include "compiler/Import/WeightTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

#include <memory>

namespace hpc::onnx {

/// Dims of a tensor: cuts, heads and [q|k|v] split some of them, and a plan's slices have at most 32.
constexpr int64_t maxRank = 24;
/// Limit on the bytes of a tensor, so low that sums over all tensors of a program do not overflow. It also holds for
/// the product of the other sizes where one is 0.
constexpr int64_t maxTensorBytes = int64_t(1) << 46;

/// The one check of which tensors can exist: an error unless there are at most maxRank dims, none of them negative, and
/// at most maxTensorBytes bytes.
Status checkTensor(ArrayRef<int64_t> shape, DType dtype);
Status checkRank(int64_t rank);

class GraphBuilder {
public:
  /// `withoutWeights`: parameters refer to the place of their content, not to the content.
  GraphBuilder(func::FuncOp function, bool withoutWeights);
  ~GraphBuilder();

  /// Ops built from here on belong to this node; `label` ("node '/h.0/Add' (Add)") begins its errors.
  void beginNode(Location location, std::string label);
  const Status &status() const { return failure; }
  /// The message of the error without the node's label.
  const std::string &errorReason() const { return reason; }
  void clearError() { failure = Status::success(); }
  /// checkTensor, as an error of the node. Called for each result when it is made.
  bool checkType(ArrayRef<int64_t> shape, DType dtype);
  /// Names of the model's values, which nothing that is written out may take.
  void reserveNames(const std::set<std::string> &names);
  /// Returns the error and clears it.
  Status takeError() { return std::exchange(failure, Status::success()); }
  /// Records an error and returns a placeholder, for `return {b.fail(...)}`.
  Value fail(const std::string &message, ErrorKind kind = ErrorKind::Model);

  // ---- known values ----
  Value known(Tensor tensor) { return known(KnownTensor(std::move(tensor))); }
  Value known(KnownTensor tensor);
  /// A constant of the file, loaded whenever it is needed.
  Value known(const StoredTensor &stored);
  /// The tensor of a Constant node, named like its value; `key` identifies it however often its node is imported.
  Value constant(const void *key, StoredTensor stored, StringRef name);
  Value weight(const StoredTensor &stored);
  /// The parameter for a known value that a product, convolution, recurrent op or lookup reads beside data: it holds
  /// the stored tensor from which views, casts, sums and products made the value. A value without such a tensor stays.
  Value parameter(Value value);
  /// Keeps the name that the model has for a known value, for the parameter that it may become.
  void noteName(Value value, StringRef name);
  /// The same known value, which never becomes a parameter: an initial state, a table of angles.
  Value settled(Value value);
  bool isKnown(Value value) const { return entries.count(value); }
  /// Null when the value depends on data.
  std::shared_ptr<const KnownTensor> find(Value value);
  /// As `find`, also for the content of a weight: for inputs whose numbers a node needs (the scales of a Resize).
  std::shared_ptr<const KnownTensor> content(Value value);
  /// All elements of a known value as integers; an error that names `what` when it depends on data.
  SmallVector<int64_t> integers(Value value, const std::string &what);
  /// The only element, of rank 0.
  Tensor element(Value value, const std::string &what);
  double number(Value value, const std::string &what) { return element(value, what).number(0); }
  /// A value without known content, for ops whose results the program does not read in the end.
  Value unread(ArrayRef<int64_t> shape, DType dtype) { return placeholder(type(shape, dtype)); }
  /// A rank-0 constant with the element type of `like`.
  Value scalar(double value, Value like) { return scalar(value, dtype(like)); }
  Value scalar(double value, DType dtype);
  Value indices(ArrayRef<int64_t> values);
  /// Frees the content, which nobody needs again (the value itself may still have real users).
  void forget(Value value);

  // ---- types that are only stored ----
  /// Marks a value that holds the bits of that type; it must have the type's storage type and no other reader.
  Value asNarrow(Value value, const NarrowType &type) {
    narrowTypes[value] = &type;
    return value;
  }
  /// Null for values of a type that ops compute with.
  const NarrowType *narrowType(Value value) const { return narrowTypes.lookup(value); }

  // ---- sequences: lists of tensors, of which a program has the tensors alone ----
  /// A placeholder for the list; an error where there are too many tensors in all of them.
  Value sequence(ArrayRef<Value> parts);
  /// Emits an error of the node and returns false if the lists cannot hold `count` more tensors.
  bool checkSequence(int64_t count);
  bool isSequence(Value value) const { return sequences.contains(value); }
  /// The tensors of a sequence; empty for other values.
  SmallVector<Value> parts(Value sequence) const { return sequences.lookup(sequence); }

  // ---- elementwise, broadcasting ----
  template <typename Op> Value unary(Value x) { return finish(Op::create(builder, loc, x), true); }
  template <typename Op> Value binary(Value x, Value y) {
    return broadcasts({x, y}) ? finish(Op::create(builder, loc, x, y), true) : x;
  }
  Value compare(nn::ComparePredicate predicate, Value x, Value y);
  Value select(Value condition, Value onTrue, Value onFalse);
  Value cast(Value x, DType to);
  /// f16 and bf16 as f32, in which a node of several steps computes; other types as they are.
  Value widened(Value x);
  Value bitcast(Value x, DType to);
  Value gelu(Value x, bool tanhApproximation);
  /// A stored tensor that is added to a product is its bias, a parameter.
  Value add(Value x, Value y);
  Value sub(Value x, Value y) { return binary<nn::SubOp>(x, y); }
  Value mul(Value x, Value y) { return binary<nn::MulOp>(x, y); }
  Value div(Value x, Value y) { return binary<nn::DivOp>(x, y); }

  // ---- views; those that change nothing return their operand ----
  Value reshape(Value x, ArrayRef<int64_t> shape);
  Value transpose(Value x, ArrayRef<int64_t> permutation);
  Value broadcast(Value x, ArrayRef<int64_t> shape);
  Value slice(Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps, ArrayRef<int64_t> sizes);
  Value concat(ArrayRef<Value> parts, int64_t axis);
  /// `fill`: rank 0, of x's element type.
  Value pad(Value x, ArrayRef<int64_t> low, ArrayRef<int64_t> high, const Tensor &fill);
  /// The last dims of x as [sizes.., counts..]: windows and their positions, all of them inside x. One of each per dim.
  Value window(Value x, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
               ArrayRef<int64_t> counts);

  // ---- the rest ----
  Value matmul(Value x, Value y, bool transposeX = false, bool transposeY = false);
  /// The same product, where operands have 16 bits with the f32 result not yet rounded, for further steps.
  Value wideMatmul(Value x, Value y, bool transposeX = false, bool transposeY = false);
  Value reduce(ReduceKind kind, Value x, ArrayRef<int64_t> axes);
  /// A sum over n, by one division: the mean of equal numbers is that number. For 16 bits both are computed in f32.
  Value mean(Value x, ArrayRef<int64_t> axes);
  Value softmax(Value x) { return unaryWhole<nn::SoftmaxOp>(x); }
  Value cumsum(Value x, int64_t axis, bool exclusive, bool reverse);
  Value sortPosition(Value x, int64_t axis, bool descending);
  Value gather(Value data, Value indices, int64_t axis);
  Value gatherNd(Value data, Value indices, int64_t batchDims);
  /// Site `site` of the model's dropouts: drawn anew in every step.
  Value dropout(Value x, int64_t site, double rate);
  Value layerNorm(Value x, Value weight, Value bias, double epsilon);
  Value rmsNorm(Value x, Value weight, double epsilon);
  /// The loss of each row of logits [..., classes] by its label [...], 0 where that is `ignored`: at least one of the two operands
  /// is not known.
  Value crossEntropy(Value logits, Value labels, std::optional<int64_t> ignored);
  Value attention(Value query, Value key, Value value, Value bias, double scale, std::optional<int64_t> causalOffset);

  // ---- types ----
  DType dtype(Value value) const;
  static SmallVector<int64_t> shape(Value value) { return SmallVector<int64_t>(nn::shapeOf(value)); }
  static int64_t rank(Value value) { return int64_t(nn::shapeOf(value).size()); }
  RankedTensorType type(ArrayRef<int64_t> shape, DType dtype) const;

  /// The reason why a value is not known, as the end of "its shape": the weights without content, or the inputs, from
  /// which it is computed, and the remedy.
  std::string unknownText(Value value);

  /// A value for messages: "'wpe.weight' 64x768" where it is stored, else "the data 64x768".
  std::string valueText(Value value);

  /// The value in the program: a known value is written out in full.
  Value real(Value value) { return writtenOut(value, false); }
  /// Stored tensors whose numbers are in the program and in no parameter that --train trains, in the order of their reads.
  ArrayRef<const StoredTensor *> untrained() const { return leftOut.getArrayRef(); }
  /// Gives parameters their aliases and erases ops without users.
  void finishFunction(ArrayRef<Value> results);

private:
  Value product(Value x, Value y, bool transposeX, bool transposeY, DType to);
  struct Entry {
    std::shared_ptr<const KnownTensor> tensor;
    const StoredTensor *stored = nullptr;
    Location loc;
    Value compact = {}, full = {}; ///< in the program, once written out
    const StoredTensor *root = nullptr; ///< the largest of its stored tensors that may be a parameter
    /// The op that makes it from `root` and others: kept where the op on a parameter can replace the value.
    Operation *maker = nullptr;
    SmallVector<std::shared_ptr<const KnownTensor>, 0> held = {}; ///< the maker's operands that have no root
    Value parameter = {};  ///< the value as a parameter, once written out
    std::string name = {}; ///< in the model, if it has one
  };

  /// Records the operands from which a folded op made its result. Returns whether the op is kept.
  bool noteMaker(Value result, Operation *op);
  bool mayMake(Operation *op) const;
  const StoredTensor *rootOf(Operation *op, Value operand) const;
  Value madeAgain(Value value);
  Value computedParameter(Value value);

  template <typename Op> Value unaryWhole(Value x) { return finish(Op::create(builder, loc, x), false); }
  /// Emits an error if the shapes or element types do not fit together.
  bool broadcasts(ArrayRef<Value> values);
  Value placeholder(RankedTensorType type);
  /// Verifies the new op, then folds it or gives it real operands. Returns its result.
  Value finish(Operation *op, bool elementwise);
  /// The step scalar of that name; the first call adds the function's argument.
  Value stepScalar(StringRef name);
  void useRealOperands(Operation *op, bool elementwise);
  std::string freeName();
  Value writtenOut(Value value, bool compact);
  bool verifyOp(Operation *op);

  func::FuncOp function;
  bool withoutWeights;
  OpBuilder builder;
  WeightTable weights;
  Location loc;
  std::string label;
  Status failure;
  std::string reason; ///< of the failure
  Block placeholders; ///< its arguments are the placeholders of known values
  llvm::DenseMap<Value, Entry> entries;
  llvm::DenseMap<Value, const NarrowType *> narrowTypes;
  llvm::DenseMap<Value, const StoredTensor *> storedWeights;
  llvm::DenseMap<Value, SmallVector<Value>> sequences;
  std::map<const void *, StoredTensor> constants;
  llvm::SetVector<const StoredTensor *> leftOut;
  SmallVector<Value> writtenStored; ///< tensors of the file that are constants of the program
  int64_t numHeld = 0; ///< tensors of all sequences
  llvm::StringSet<> takenNames, computedNames;
  int64_t numWritten = 0;
};

} // namespace hpc::onnx
