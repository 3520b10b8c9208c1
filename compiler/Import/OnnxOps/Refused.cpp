// Ops that no plan can run, each with the reason and, if there is one, the remedy. An op without a line here is one
// that nobody has implemented yet.
#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {
namespace {

constexpr char dataShape[] =
    "how many elements it gives depends on the data, and a plan has static shapes; bind what decides it with "
    "--const, or take the op out of the model";
constexpr char optionals[] = "optional values; export the model for the case that is used";
constexpr char strings[] = "strings; do the text processing before the model";
constexpr char random[] = "random numbers; give them as an input of the model";
constexpr char images[] = "encoded images; decode them before the model";
constexpr char updates[] = "a training step inside the graph; export the forward model";

template <const char *why> Results refused(NodeImport &n) { return {n.unsupported(why)}; }

const OnnxOp refusedTable[] = {
    {"Unique", 11, refused<dataShape>},
    {"NonMaxSuppression", 10, refused<dataShape>},
    {"Optional", 15, refused<optionals>},
    {"StringNormalizer", 10, refused<strings>},
    {"StringConcat", 20, refused<strings>},
    {"StringSplit", 20, refused<strings>},
    {"RegexFullMatch", 20, refused<strings>},
    {"TfIdfVectorizer", 9, refused<strings>},
    {"LabelEncoder", 1, refused<strings>, "ai.onnx.ml"},
    {"RandomNormal", 1, refused<random>},
    {"RandomNormalLike", 1, refused<random>},
    {"RandomUniform", 1, refused<random>},
    {"RandomUniformLike", 1, refused<random>},
    {"Multinomial", 7, refused<random>},
    {"Bernoulli", 15, refused<random>},
    {"ImageDecoder", 20, refused<images>},
    {"Gradient", 1, refused<updates>, "ai.onnx.preview.training"},
    {"Adagrad", 1, refused<updates>, "ai.onnx.preview.training"},
    {"Adam", 1, refused<updates>, "ai.onnx.preview.training"},
    {"Momentum", 1, refused<updates>, "ai.onnx.preview.training"},
};

} // namespace

ArrayRef<OnnxOp> refusedOps() { return refusedTable; }

} // namespace hpc::onnx
