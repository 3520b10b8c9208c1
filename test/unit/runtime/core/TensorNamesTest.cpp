// Which tensor of a file is meant by a name of the plan. What is not meant must stay unmatched: a tensor of another layer or branch
// that happens to fit would give wrong numbers.
#include "runtime/core/TensorNames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;

namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

/// What each wanted name is matched with, "-" for nothing.
std::vector<std::string> match(const std::vector<std::vector<std::string>> &wanted, const std::vector<std::string> &available,
                               std::vector<std::string> *notes = nullptr) {
  std::vector<WantedTensor> tensors;
  for (const std::vector<std::string> &names : wanted)
    tensors.push_back({names, {4, 4}, false});
  Shapes shapes;
  for (const std::string &name : available)
    shapes[name] = {4, 4};
  NameMatches matches = matchNames(tensors, shapes);
  std::vector<std::string> found;
  for (const std::optional<NameMatch> &each : matches.of)
    found.push_back(each ? each->found : "-");
  if (notes)
    *notes = matches.notes;
  return found;
}

using List = std::vector<std::string>;

} // namespace

TEST(TensorNames, EqualNamesWin) {
  List notes;
  EXPECT_EQ(match({{"h.0.w"}, {"w"}}, {"w", "h.0.w"}, &notes), (List{"h.0.w", "w"}));
  EXPECT_TRUE(notes.empty());
}

TEST(TensorNames, PrefixesMoreOrLess) {
  List notes;
  EXPECT_EQ(match({{"transformer.h.0.w"}, {"transformer.h.1.w"}}, {"h.0.w", "h.1.w"}, &notes), (List{"h.0.w", "h.1.w"}));
  EXPECT_THAT(notes, testing::ElementsAre("names of the file lack 'transformer.'"));
  EXPECT_EQ(match({{"h.0.w"}, {"h.1.w"}}, {"model.h.0.w", "model.h.1.w"}), (List{"model.h.0.w", "model.h.1.w"}));
  EXPECT_EQ(match({{"net.h.0.w"}, {"net.h.1.w"}}, {"transformer.h.0.w", "transformer.h.1.w"}),
            (List{"transformer.h.0.w", "transformer.h.1.w"}));
  // Some under a prefix, some not: lm_head stands beside the transformer.
  EXPECT_EQ(match({{"transformer.h.0.w"}, {"lm_head.weight"}}, {"h.0.w", "lm_head.weight"}), (List{"h.0.w", "lm_head.weight"}));
}

TEST(TensorNames, WrappersAnywhere) {
  EXPECT_EQ(match({{"model.h.0.w"}, {"model.h.1.w"}}, {"_orig_mod.model.h.0.w", "_orig_mod.model.h.1.w"}),
            (List{"_orig_mod.model.h.0.w", "_orig_mod.model.h.1.w"}));
  EXPECT_EQ(match({{"model.h.0.w"}}, {"model.h.0._checkpoint_wrapped_module.w"}), (List{"model.h.0._checkpoint_wrapped_module.w"}));
  EXPECT_EQ(match({{"h.0.w"}}, {"module.h.0.w"}), (List{"module.h.0.w"}));
}

TEST(TensorNames, NothingByChance) {
  // Another layer, another branch.
  EXPECT_EQ(match({{"h.0.w"}, {"h.1.w"}}, {"h.0.w", "h.2.w"}), (List{"h.0.w", "-"}));
  EXPECT_EQ(match({{"encoder.h.0.w"}, {"encoder.h.1.w"}}, {"decoder.h.0.w", "decoder.h.1.w"}), (List{"-", "-"}));
  // One file tensor for two of the plan.
  EXPECT_EQ(match({{"encoder.h.0.w"}, {"decoder.h.0.w"}}, {"h.0.w"}), (List{"-", "-"}));
  EXPECT_EQ(match({{"a.w"}, {"x.a.w"}}, {"a.w"}), (List{"a.w", "-"}));
  // Two prefixes that fit alike.
  EXPECT_EQ(match({{"h.0.w"}}, {"student.h.0.w", "teacher.h.0.w"}), (List{"-"}));
  // A part of a name is no prefix.
  EXPECT_EQ(match({{"my_h.0.w"}}, {"h.0.w"}), (List{"-"}));
}

TEST(TensorNames, TiedNames) {
  // The plan knows both names.
  EXPECT_EQ(match({{"lm_head.weight", "transformer.wte.weight"}}, {"transformer.wte.weight"}), (List{"transformer.wte.weight"}));
  // And under another prefix.
  EXPECT_EQ(match({{"lm_head.weight", "transformer.wte.weight"}, {"transformer.h.0.w"}}, {"wte.weight", "h.0.w"}),
            (List{"wte.weight", "h.0.w"}));
  // Two parameters of the plan, and the file has one: Hugging Face's way to save tied ones.
  List notes;
  EXPECT_EQ(match({{"lm_head.weight"}, {"transformer.wte.weight"}}, {"transformer.wte.weight"}, &notes),
            (List{"transformer.wte.weight", "transformer.wte.weight"}));
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("'lm_head.weight' is tied to 'transformer.wte.weight'")));
  EXPECT_EQ(match({{"model.embed_tokens.weight"}}, {"lm_head.weight"}), (List{"lm_head.weight"}));
  // Not to a table of another shape, nor to one of two.
  NameMatches other = matchNames({{{"lm_head.weight"}, {9, 4}, false}}, Shapes{{"transformer.wte.weight", {7, 4}}});
  EXPECT_FALSE(other.of[0].has_value());
  EXPECT_EQ(match({{"lm_head.weight"}}, {"a.embed_tokens.weight", "b.embed_tokens.weight"}), (List{"-"}));
}

// What an exporter made of a tensor goes by the tensor's name beside the tensor itself.
TEST(TensorNames, MadeOfATensor) {
  NameMatches made = matchNames({{{"lm_head.weight"}, {7, 4}, false}, {{"val_12", "lm_head.weight"}, {4, 7}, true}},
                                Shapes{{"lm_head.weight", {7, 4}}});
  ASSERT_TRUE(made.of[0] && made.of[1]);
  EXPECT_EQ(made.of[1]->found, "lm_head.weight");
  EXPECT_EQ(made.of[1]->name, 1u);
}
