// Options to attribute and back: one list of fields.
#include "passes/Options.h"

namespace hpc {

/// Visits every field with its name; the only place to extend.
template <typename Opts, typename Number, typename Text>
static void forEachField(Opts &options, Number number, Text text) {
  number("tp", options.tp);
  number("pp", options.pp);
  number("dp", options.dp);
  number("micro_batches", options.microBatches);
  text("batch_dim", options.batchDim);
  text("pp_split", options.ppSplit);
  number("pp_chunks", options.ppChunks);
  text("pp_schedule", options.ppSchedule);
}

DictionaryAttr Options::toAttribute(MLIRContext *context) const {
  Builder builder(context);
  NamedAttrList fields;
  forEachField(
      *this, [&](StringRef name, int64_t value) { fields.set(name, builder.getI64IntegerAttr(value)); },
      [&](StringRef name, const std::string &value) { fields.set(name, builder.getStringAttr(value)); });
  return fields.getDictionary(context);
}

Options Options::fromAttribute(DictionaryAttr attribute) {
  Options options;
  if (!attribute)
    return options;
  forEachField(
      options,
      [&](StringRef name, int64_t &value) {
        if (auto number = attribute.getAs<IntegerAttr>(name))
          value = number.getInt();
      },
      [&](StringRef name, std::string &value) {
        if (auto text = attribute.getAs<StringAttr>(name))
          value = text.str();
      });
  return options;
}

} // namespace hpc
