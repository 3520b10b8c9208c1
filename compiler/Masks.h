// Numbers that stand for "masked" in a model: what exporters write in the place of minus infinity. One meaning each, in one place.
#pragma once

namespace hpc {

/// From here on a number is meant to mask, whatever the element type. Exporters write -1e4 (Hugging Face's BERT and GPT-2, as ONNX's mask_filter_value; bf16
/// rounds it to -9984), -65504 (the lowest f16), -1e9, the lowest number of a wider type and -inf. Beside a score that is not masked the weight of such a one is
/// 0 in double (exp(-746)) while scores differ by less than 9000.
constexpr double maskingNumber = -9984;

/// No number that counts comes near: numbers of such magnitude absorb a score that is added to them, say nothing of the size of a tensor's values, and agree
/// relative to themselves. The lowest f32 is -3.4e38.
constexpr double maskMagnitude = 1e30;

/// i64, on an attention with keys in a state: no query sees a key that is this many positions or more before its own (passes/Generate).
constexpr const char *windowAttrName = "hpc.window";

} // namespace hpc
