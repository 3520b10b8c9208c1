// Collectives on uneven meshes: every planned reshard between small shardings must keep the global tensor, and ops that
// take the wrong axis, or are dropped, must show.
#include "test/unit/compiler/InterpreterFixture.h"

#include <cmath>

using namespace hpc;
using testing::ElementsAre;

namespace {

dist::Mesh meshFrom(const std::string &text) { return *dist::parseMesh(text); }
dist::Sharding shardingFrom(const std::string &text) {
  Expected<dist::Sharding> sharding = dist::parseSharding(text);
  EXPECT_TRUE(sharding.ok()) << text;
  return *sharding;
}

/// @main(x under `from`) -> x under `to`, by the steps of planReshard.
struct ReshardProgram {
  OwningOpRef<ModuleOp> module;
  func::FuncOp main;

  ReshardProgram(MLIRContext &context, const dist::Mesh &mesh, const dist::Sharding &from, const dist::Sharding &to,
                 const std::vector<dist::ReshardStep> &steps) {
    OpBuilder builder(&context);
    Location loc = builder.getUnknownLoc();
    module = ModuleOp::create(loc);
    module->getOperation()->setAttr(dist::meshAttrName, dist::MeshAttr::get(&context, mesh));
    auto local = [&](const dist::Sharding &sharding) {
      return dist::localType(
          dist::withSharding(RankedTensorType::get(dist::globalShape(sharding), builder.getF32Type()),
                             dist::normalize(sharding, mesh)),
          mesh);
    };
    builder.setInsertionPointToEnd(module->getBody());
    main = func::FuncOp::create(builder, loc, "main", builder.getFunctionType({local(from)}, {local(to)}));
    builder.setInsertionPointToEnd(main.addEntryBlock());
    Value value = main.getArgument(0);
    for (const dist::ReshardStep &step : steps) {
      auto attr = [&](const dist::Sharding &sharding) { return dist::ShardingAttr::get(&context, sharding); };
      SmallVector<StringRef> axes(step.axes.begin(), step.axes.end());
      OperationState state(loc, nameOf(step.kind), value, local(step.after));
      state.addAttribute("before", attr(step.before));
      state.addAttribute("after", attr(step.after));
      if (step.kind == dist::ReshardStep::AllReduce || step.kind == dist::ReshardStep::Permute)
        state.addAttribute("axes", builder.getStrArrayAttr(axes));
      else
        state.addAttribute("axis", builder.getStringAttr(axes.front()));
      if (step.kind == dist::ReshardStep::AllReduce)
        state.addAttribute("kind", dist::ReduceKindAttr::get(&context, ReduceKind::Sum));
      auto index = [&](StringRef name, int value) {
        if (value >= 0)
          state.addAttribute(name, builder.getI64IntegerAttr(value));
      };
      if (step.kind != dist::ReshardStep::AllReduce && step.kind != dist::ReshardStep::Permute) {
        index("from_dim", step.fromDim);
        index("from_sub", step.fromSub);
        index("to_dim", step.toDim);
        index("to_sub", step.toSub);
      }
      value = builder.create(state)->getResult(0);
    }
    func::ReturnOp::create(builder, loc, value);
  }

  static StringRef nameOf(dist::ReshardStep::Kind kind) {
    switch (kind) {
    case dist::ReshardStep::Slice:
      return dist::SliceOp::getOperationName();
    case dist::ReshardStep::Permute:
      return dist::PermuteOp::getOperationName();
    case dist::ReshardStep::AllToAll:
      return dist::AllToAllOp::getOperationName();
    case dist::ReshardStep::AllGather:
      return dist::AllGatherOp::getOperationName();
    case dist::ReshardStep::AllReduce:
      return dist::AllReduceOp::getOperationName();
    case dist::ReshardStep::ReduceScatter:
      return dist::ReduceScatterOp::getOperationName();
    case dist::ReshardStep::Accumulate:
      return dist::AccumulateOp::getOperationName();
    }
    return "";
  }
};

/// An input that is partial over k ranks reaches each of them whole, so its value is k times what is given.
TEST_F(InterpreterTest, plannedReshardsKeepTheGlobalTensor) {
  int programs = 0, steps = 0;
  for (const char *meshText : {"tp=2:tensor", "x=2:tensor, y=2:tensor", "x=3:tensor, y=2:tensor"}) {
    dist::Mesh mesh = meshFrom(meshText);
    std::vector<std::string> shardings;
    if (mesh.axes.size() == 1)
      shardings = {"[5, 6]", "[5@tp, 6]", "[5, 6@tp]", "[5, (2, 3@tp)]", "[5, (2@tp, 3)]", "[5, 6] partial{tp}"};
    else
      shardings = {"[5, 6]",
                   "[5@x, 6]",
                   "[5@(x, y), 6]",
                   "[5@(y, x), 6]",
                   "[5@x, 6@y]",
                   "[5@y, 6@x]",
                   "[5, (2@y, 3@x)]",
                   "[5, (2, 3@y)]",
                   "[5, 6@x] partial{y}",
                   "[5, 6] partial{x, y}",
                   "[5@y, 6] partial{x}"};
    for (const std::string &fromText : shardings)
      for (const std::string &toText : shardings) {
        dist::Sharding from = shardingFrom(fromText), to = shardingFrom(toText);
        if (!llvm::all_of(to.partial, [&](auto &axis) { return llvm::is_contained(from.partial, axis); }))
          continue;
        Expected<std::vector<dist::ReshardStep>> plan = dist::planReshard(from, to, mesh);
        ASSERT_TRUE(plan.ok()) << fromText << " -> " << toText << ": " << plan.status().message();
        ReshardProgram program(context, mesh, from, to, *plan);
        ASSERT_TRUE(succeeded(program.module->verify())) << fromText << " -> " << toText;
        Tensor input = counting({5, 6});
        auto results = runPartitioned(program.main, {input}, mesh);
        ASSERT_TRUE(results.ok()) << fromText << " -> " << toText << ": " << results.status().text();
        int64_t terms = 1;
        for (const std::string &axis : from.partial)
          terms *= mesh.size(axis);
        for (double &value : input.floats)
          value *= double(terms);
        ASSERT_EQ(results->front().floats, input.floats) << meshText << ": " << fromText << " -> " << toText;
        ++programs;
        steps += int(plan->size());
      }
  }
  EXPECT_GT(programs, 200);
  EXPECT_GT(steps, 250);
}

struct CollectiveTest : InterpreterTest {
  /// Runs a program over `mesh`, its text without the module.
  Expected<std::vector<Tensor>> run(const std::string &mesh, const std::string &body, ArrayRef<Tensor> inputs,
                                    const RunOptions &options = {}) {
    size_t function = body.find("func.func"); // attribute aliases stand outside the module
    func::FuncOp main = parse(body.substr(0, function) + "module attributes {dist.mesh = #dist.mesh<\"" + mesh +
                              "\">} {\n" + body.substr(function) + "\n}");
    if (!main)
      return Status::error(ErrorKind::Internal, "does not parse");
    return runPartitioned(main, inputs, meshFrom(mesh), options);
  }
};

/// A gather along the wrong axis cannot reach the missing elements: they are NaN.
TEST_F(CollectiveTest, aGatherOverTheWrongAxisShows) {
  std::string program = R"(
    #cut = #dist.sharding<"[5@x]">
    #whole = #dist.sharding<"[5]">
    func.func @main(%x: tensor<3xf32, #cut>) -> tensor<5xf32, #whole> {
      %0 = dist.all_gather %x {before = #cut, after = #whole, axis = "AXIS", from_dim = 0 : i64, from_sub = 0 : i64}
        : tensor<3xf32, #cut> -> tensor<5xf32, #whole>
      return %0 : tensor<5xf32, #whole>
    })";
  std::string right = program, wrong = program;
  right.replace(right.find("AXIS"), 4, "x");
  wrong.replace(wrong.find("AXIS"), 4, "y");
  auto results = run("x=2:tensor, y=2:tensor", right, {counting({5})});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(results->front().floats, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(run("x=2:tensor, y=2:tensor", wrong, {counting({5})}).status().message(),
            "output 0: element 0 is 1.000000 at x=0, y=0 and nan at x=1, y=0");
}

/// Each rank of a dropped all-reduce has another part of the sum; a doubled one adds twice.
TEST_F(CollectiveTest, aDroppedOrDoubledAllReduceShows) {
  std::string head = R"(
    #k = #dist.sharding<"[1, 4@tp]">
    #w = #dist.sharding<"[4@tp, 1]">
    #part = #dist.sharding<"[1, 1] partial{tp}">
    #full = #dist.sharding<"[1, 1]">
    func.func @main(%x: tensor<1x2xf32, #k>, %w: tensor<2x1xf32, #w>) -> tensor<1x1xf32, #full> {
      %0 = nn.matmul %x, %w : tensor<1x2xf32, #k>, tensor<2x1xf32, #w> -> tensor<1x1xf32, #part>
  )";
  std::string reduce =
      R"(= dist.all_reduce %0 {before = #part, after = #full, axes = ["tp"], kind = #dist<reduce_kind sum>}
      : tensor<1x1xf32, #part> -> tensor<1x1xf32, #full>
  )";
  std::vector<Tensor> inputs = {counting({1, 4}), counting({4, 1})};
  auto results = run("tp=2:tensor", head + "%1 " + reduce + "return %1 : tensor<1x1xf32, #full> }", inputs);
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(results->front().floats, ElementsAre(30));
  std::string dropped = "%1 = nn.reshape %0 : tensor<1x1xf32, #part> -> tensor<1x1xf32, #full>\n";
  EXPECT_EQ(run("tp=2:tensor", head + dropped + "return %1 : tensor<1x1xf32, #full> }", inputs).status().message(),
            "output 0: element 0 is 5.000000 at tp=0 and 25.000000 at tp=1");
  results = run("tp=2:tensor",
                head + "%9 " + reduce + "%8 = nn.reshape %9 : tensor<1x1xf32, #full> -> tensor<1x1xf32, #part>\n%7 " +
                    std::string(reduce).replace(reduce.find("%0"), 2, "%8") + "return %7 : tensor<1x1xf32, #full> }",
                inputs);
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(results->front().floats, ElementsAre(60));
}

/// An uneven cut of k: without the fill, padding of the activation (NaN) times the weight's zero padding is NaN.
TEST_F(CollectiveTest, unevenContractionNeedsItsFill) {
  std::string program = R"(
    #k = #dist.sharding<"[2, (3@tp, 2)]">
    #w = #dist.sharding<"[(3@tp, 2), 1]">
    #part = #dist.sharding<"[2, 1] partial{tp}">
    #full = #dist.sharding<"[2, 1]">
    func.func @main(%x: tensor<2x4xf32, #k>) -> tensor<2x1xf32, #full> {
      %w = nn.parameter "w" {value = dense<1.0> : tensor<6x1xf32>} : tensor<4x1xf32, #w>
      %a = nn.neg %x : tensor<2x4xf32, #k> -> tensor<2x4xf32, #k>
      %b = FILL : tensor<2x4xf32, #k> -> tensor<2x4xf32, #k>
      %0 = nn.matmul %b, %w : tensor<2x4xf32, #k>, tensor<4x1xf32, #w> -> tensor<2x1xf32, #part>
      %1 = dist.all_reduce %0 {before = #part, after = #full, axes = ["tp"], kind = #dist<reduce_kind sum>}
        : tensor<2x1xf32, #part> -> tensor<2x1xf32, #full>
      return %1 : tensor<2x1xf32, #full>
    })";
  std::string filled = program, unfilled = program;
  filled.replace(filled.find("FILL"), 4, "dist.fill_tail %a {dims = array<i64: 1>, value = 0.0 : f32}");
  unfilled.replace(unfilled.find("FILL"), 4, "nn.abs %a");
  auto results = run("tp=2:tensor", filled, {counting({2, 6})});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(results->front().floats, ElementsAre(-21, -57));
  results = run("tp=2:tensor", unfilled, {counting({2, 6})});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_TRUE(std::isnan(results->front().floats[0]));
}

/// 5 rows over 2 ranks, table and ids in one program; ids cut over mb leave padding ids that must not crash.
TEST_F(CollectiveTest, vocabularyParallelEmbedding) {
  auto results = run("mb=2:time, tp=2:tensor", R"(
    #t = #dist.sharding<"[5@tp, 2]">
    #i = #dist.sharding<"[3@mb]">
    #part = #dist.sharding<"[3@mb, 2] partial{tp}">
    #full = #dist.sharding<"[3@mb, 2]">
    func.func @main(%t: tensor<3x2xf32, #t>, %i: tensor<2xi64, #i>) -> tensor<2x2xf32, #full> {
      %o = dist.offset {dim = #dist.sharding<"[5@tp]">} : tensor<i64>
      %j = nn.add %i, %i : tensor<2xi64, #i>, tensor<2xi64, #i> -> tensor<2xi64, #i>
      %0 = nn.embedding %t, %j offset %o : tensor<i64> {vocabulary = 5 : i64}
        : tensor<3x2xf32, #t>, tensor<2xi64, #i> -> tensor<2x2xf32, #part>
      %1 = dist.all_reduce %0 {before = #part, after = #full, axes = ["tp"], kind = #dist<reduce_kind sum>}
        : tensor<2x2xf32, #part> -> tensor<2x2xf32, #full>
      return %1 : tensor<2x2xf32, #full>
    })",
                     {counting({5, 2}), integerTensor({3}, {0, 2, -1})});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(results->front().floats, ElementsAre(1, 2, 9, 10, 7, 8));
}

/// Two axes on one dim, uneven: the largest element is found where the padding holds the lowest value.
TEST_F(CollectiveTest, maximumOverTwoAxes) {
  auto results = run("x=2:tensor, y=2:tensor", R"(
    #c = #dist.sharding<"[5@(x, y)]">
    #full = #dist.sharding<"[1]">
    func.func @main(%x: tensor<2xf32, #c>) -> tensor<1xf32, #full> {
      %0 = dist.fill_tail %x {dims = array<i64: 0>, value = 0xFF800000 : f32} : tensor<2xf32, #c> -> tensor<2xf32, #c>
      %1 = nn.reduce max %0 {axes = array<i64: 0>} : tensor<2xf32, #c> -> tensor<1xf32, #full>
      %2 = dist.all_reduce %1 {before = #full, after = #full, axes = ["x", "y"], kind = #dist<reduce_kind max>}
        : tensor<1xf32, #full> -> tensor<1xf32, #full>
      return %2 : tensor<1xf32, #full>
    })",
                     {floatTensor({5}, {-9, -4, -7, -3, -8})});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT(results->front().floats, ElementsAre(-3));
}

TEST_F(CollectiveTest, paddingIsPoisonExceptInArguments) {
  std::vector<std::vector<double>> seen;
  RunOptions options;
  options.observe = [&](Value value, const LocalTensors &locals) {
    for (const auto &local : locals)
      seen.push_back(numbers(*local));
    return Status::success();
  };
  auto results = run("tp=2:tensor", R"(
    #c = #dist.sharding<"[3@tp]">
    func.func @main(%x: tensor<2xf32, #c>, %y: tensor<2xi64, #c>) -> (tensor<2xf32, #c>, tensor<2xi64, #c>) {
      %0 = nn.neg %x : tensor<2xf32, #c> -> tensor<2xf32, #c>
      %1 = nn.neg %y : tensor<2xi64, #c> -> tensor<2xi64, #c>
      return %0, %1 : tensor<2xf32, #c>, tensor<2xi64, #c>
    })",
                     {counting({3}), integerTensor({3}, {1, 2, 3})}, options);
  ASSERT_TRUE(results.ok()) << results.status().text();
  auto isNan = testing::NanSensitiveDoubleEq(NAN);
  auto isLarge = testing::Gt(1e18);
  EXPECT_THAT(seen,
              ElementsAre(ElementsAre(1, 2), ElementsAre(3, 0), ElementsAre(1, 2), ElementsAre(3, 0),
                          ElementsAre(-1, -2), ElementsAre(-3, isNan), ElementsAre(-1, -2), ElementsAre(-3, isLarge)));
  EXPECT_THAT((*results)[0].floats, ElementsAre(-1, -2, -3));
  EXPECT_THAT((*results)[1].ints, ElementsAre(-1, -2, -3));
}

TEST_F(CollectiveTest, blockCollectives) {
  std::string body = R"(
    #r = #dist.sharding<"[4@x]">
    func.func @main(%x: tensor<2xf32, #r>) -> (tensor<2xf32, #r>, tensor<2xf32, #r>, tensor<2xf32, #r>) {
      %g = dist.raw_all_gather %x {axis = "x"} : tensor<2xf32, #r> -> tensor<2x2xf32>
      %s = dist.raw_reduce_scatter %g {axis = "x"} : tensor<2x2xf32> -> tensor<2xf32, #r>
      %b = nn.reshape %x : tensor<2xf32, #r> -> tensor<2x1xf32>
      %t = dist.raw_all_to_all %b {axis = "x"} : tensor<2x1xf32> -> tensor<2x1xf32>
      %u = nn.reshape %t : tensor<2x1xf32> -> tensor<2xf32, #r>
      %v = nn.slice %g {starts = array<i64: 1, 0>, steps = array<i64: 1, 1>} : tensor<2x2xf32> -> tensor<1x2xf32>
      %w = nn.reshape %v : tensor<1x2xf32> -> tensor<2xf32, #r>
      return %s, %u, %w : tensor<2xf32, #r>, tensor<2xf32, #r>, tensor<2xf32, #r>
    })";
  auto results = run("x=2:tensor", body, {floatTensor({4}, {1, 2, 3, 4})});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT((*results)[0].floats, ElementsAre(2, 4, 6, 8)); // both ranks gathered the same: twice one's block
  EXPECT_THAT((*results)[1].floats, ElementsAre(1, 3, 2, 4));
  EXPECT_THAT((*results)[2].floats, ElementsAre(3, 4, 3, 4));
}

// By hand: the rank at x takes from x + shift, and with a skew from x + shift + y, in a ring of three.
TEST_F(CollectiveTest, operandsMoveAlongARing) {
  std::string body = R"(
    #r = #dist.sharding<"[6@(x, y)]">
    func.func @main(%x: tensor<1xi64, #r>) -> (tensor<1xi64, #r>, tensor<1xi64, #r>, tensor<1xi64, #r>) {
      %0 = dist.raw_permute %x {axis = "x", shift = 1 : i64} : tensor<1xi64, #r> -> tensor<1xi64, #r>
      %1 = dist.raw_permute %x {axis = "x", shift = -4 : i64} : tensor<1xi64, #r> -> tensor<1xi64, #r>
      %2 = dist.raw_permute %x {axis = "x", shift = 0 : i64, skew = "y"} : tensor<1xi64, #r> -> tensor<1xi64, #r>
      return %0, %1, %2 : tensor<1xi64, #r>, tensor<1xi64, #r>, tensor<1xi64, #r>
    })";
  auto results = run("x=3:tensor, y=2:tensor", body, {integerTensor({6}, {0, 1, 10, 11, 20, 21})});
  ASSERT_TRUE(results.ok()) << results.status().text();
  EXPECT_THAT((*results)[0].ints, ElementsAre(10, 11, 20, 21, 0, 1));
  EXPECT_THAT((*results)[1].ints, ElementsAre(20, 21, 0, 1, 10, 11));
  EXPECT_THAT((*results)[2].ints, ElementsAre(0, 11, 10, 21, 20, 1));
}

TEST_F(CollectiveTest, aShapeThatIsNotTheBoxIsRefused) {
  Status status = run("tp=2:tensor", R"(
    #c = #dist.sharding<"[3@tp]">
    func.func @main(%x: tensor<3xf32, #c>) -> tensor<3xf32, #c> { return %x : tensor<3xf32, #c> })",
                      {counting({3})})
                      .status();
  EXPECT_THAT(status.message(), testing::HasSubstr("is not the local box of its sharding"));
}

TEST(InterpreterBoxes, partialsAreSummedAndReplicasCompared) {
  dist::Mesh mesh = meshFrom("dp=2:data, tp=2:tensor");
  auto box = [](std::vector<double> values) {
    return std::make_shared<const Tensor>(floatTensor({int64_t(values.size())}, values));
  };
  GlobalTensor sum =
      gatherGlobal({box({1, 2}), box({10, 20}), box({3, 99}), box({30, 99})}, shardingFrom("[3@dp] partial{tp}"), mesh);
  EXPECT_THAT(sum.tensor.floats, ElementsAre(11, 22, 33));
  EXPECT_FALSE(sum.disagreement);
  GlobalTensor same =
      gatherGlobal({box({1, NAN}), box({1, NAN}), box({1, NAN}), box({1, 2})}, shardingFrom("[2]"), mesh);
  ASSERT_TRUE(same.disagreement);
  EXPECT_EQ(same.disagreement->index, 1);
  EXPECT_EQ(same.disagreement->rankB, 3);
  EXPECT_EQ(coordinateText(mesh, 3), "dp=1, tp=1");
}

} // namespace
