// Field numbers of onnx.proto with the memory of protobuf's object and of ours for each, together. Elements that the
// reader leaves in the file (OnnxTensorScan) cost nothing.
#include "compiler/Import/OnnxFootprint.h"

namespace hpc::onnx {
namespace {

extern const FootprintMessage graph, function, node, attribute, valueInfo, info, sparse, training, annotation;

const FootprintField modelFields[] = {{7, 1000, &graph}, {20, 300, &training}, {25, 1000, &function}},
                     trainingFields[] = {{1, 1000, &graph}, {2, 1000, &graph}, {3, 150}, {4, 150}},
                     graphFields[] = {{1, 800, &node}, {2, 100, nullptr, 0, true}, {5, 600, &tensorFootprint}, {11, 500, &valueInfo}, {12, 500, &valueInfo},
                                      {13, 300, &valueInfo}, {14, 300, &annotation}, {15, 1000, &sparse}, {16, 200}},
                     functionFields[] = {{1, 100, nullptr, 0, true}, {4, 100, nullptr, 0, true}, {5, 100, nullptr, 0, true}, {7, 800, &node}, {9, 100}, {11, 500, &attribute}},
                     nodeFields[] = {{1, 100, nullptr, 0, true}, {2, 100, nullptr, 0, true}, {3, 64, nullptr, 0, true}, {4, 64, nullptr, 0, true},
                                     {5, 500, &attribute}, {7, 64, nullptr, 0, true}, {9, 200}},
                     attributeFields[] = {{1, 64, nullptr, 0, true}, {5, 600, &tensorFootprint}, {6, 1000, &graph}, {7, 16, nullptr, 2},
                                          {8, 16, nullptr, 16}, {9, 100}, {10, 600, &tensorFootprint}, {11, 1000, &graph},
                                          {14, 300, &info}, {15, 300, &info}, {22, 1000, &sparse}, {23, 1000, &sparse}},
                     tensorFields[] = {{1, 16, nullptr, 16}, {5, 16, nullptr, 8}, {6, 100}, {7, 16, nullptr, 16},
                                       {8, 64, nullptr, 0, true}, {11, 16, nullptr, 16}, {13, 300}},
                     sparseFields[] = {{1, 600, &tensorFootprint}, {2, 600, &tensorFootprint}, {3, 16, nullptr, 16}},
                     annotationFields[] = {{2, 150}},
                     valueInfoFields[] = {{1, 100, nullptr, 0, true}, {2, 100, &info}},
                     // A TypeProto, one of its kinds, a shape: all they hold is one of the next or a name.
                     infoFields[] = {{1, 100, &info}, {2, 100, &info}, {4, 100, &info}, {5, 100, &info}, {8, 100, &info},
                                     {9, 100, &info}};

const FootprintMessage graph(graphFields), function(functionFields), node(nodeFields), attribute(attributeFields),
    valueInfo(valueInfoFields), info(infoFields), sparse(sparseFields), training(trainingFields), annotation(annotationFields);

} // namespace

const FootprintMessage modelFootprint(modelFields), tensorFootprint(tensorFields);

} // namespace hpc::onnx
