// Field numbers of plan.proto with what protobuf's object and the struct of Plan.h for them weigh together.
// Numbers weigh 16 bytes, however short they are stored; an inline tensor and machine code weigh what they are.
#include "runtime/plan/PlanFootprint.h"

namespace hpc::plan {
namespace {

constexpr int64_t list = 16; ///< of packed numbers, per byte
using Field = FootprintField;

const Field tableFields[] = {{1, 16, nullptr, list}};
const FootprintMessage table(tableFields);
const Field sliceFields[] = {{1, 16, nullptr, list}, {2, 80, &table}, {3, 80, &table}, {4, 16, nullptr, list}};
const FootprintMessage slice(sliceFields);
const Field bufferFields[] = {{3, 16, nullptr, list}};
const FootprintMessage buffer(bufferFields);
const Field operandFields[] = {{5, 16, nullptr, list}};
const FootprintMessage operand(operandFields);
const Field windowsFields[] = {{2, 16, nullptr, list}, {3, 16, nullptr, list}, {4, 16, nullptr, list},
                               {5, 16, nullptr, list}, {6, 16, nullptr, list}, {7, 16, nullptr, list}};
const FootprintMessage windows(windowsFields);
const Field gemmFields[] = {{1, 150, &operand}, {2, 150, &operand}, {3, 150, &operand}, {4, 80, &table}, {5, 80, &table},
                            {6, 80, &table},    {8, 80, &table},    {11, 16, nullptr, list}, {12, 300, &windows}};
const FootprintMessage gemm(gemmFields);
const Field attentionTensorFields[] = {{4, 16, nullptr, list}};
const FootprintMessage attentionTensor(attentionTensorFields);
const Field attentionFields[] = {{9, 150, &attentionTensor},  {10, 150, &attentionTensor}, {11, 150, &attentionTensor},
                                 {12, 150, &attentionTensor}, {13, 150, &attentionTensor}, {14, 200, &attentionTensor}};
const FootprintMessage attention(attentionFields);
const Field kernelFields[] = {{2, 150}, {3, 80, &table}, {5, 250}, {6, 700, &attention}, {8, 100}};
const FootprintMessage kernel(kernelFields);
const Field copyFields[] = {{4, 80, &table}, {5, 80, &table}};
const FootprintMessage copy(copyFields);
const Field accumulateFields[] = {{5, 80, &table}};
const FootprintMessage accumulate(accumulateFields);
const Field collectiveFields[] = {{3, 80}, {8, 80, &table}, {10, 250}};
const FootprintMessage collective(collectiveFields);
const Field transferFields[] = {{3, 80, &table}, {6, 250}};
const FootprintMessage transfer(transferFields);
const Field loadFields[] = {{3, 200, &slice}};
const FootprintMessage load(loadFields);
const Field storeFields[] = {{3, 200, &slice}, {4, 80, &table}};
const FootprintMessage store(storeFields);
const Field instructionFields[] = {{1, 150, &gemm},       {2, 150, &kernel},   {3, 250, &copy},     {4, 150, &collective},
                                   {5, 150, &transfer},   {6, 150, &transfer}, {7, 100},            {8, 150, &load},
                                   {9, 150, &store},      {10, 150, &accumulate}, {16, 80, &table}};
const FootprintMessage instruction(instructionFields);
const Field programFields[] = {{3, 800, &instruction}};
const FootprintMessage program(programFields);
const Field bindingFields[] = {{2, 200, &slice}, {7, 16, nullptr, list}};
const FootprintMessage binding(bindingFields);
const Field stageFields[] = {{1, 250, &buffer}, {2, 450, &binding}, {3, 150, &program}, {4, 64}, {5, 8, nullptr, 8}};
const FootprintMessage stage(stageFields);
const Field weightFields[] = {{3, 16, nullptr, list}, {7, 16, nullptr, 2}, {10, 100}};
const FootprintMessage weight(weightFields);
const Field portFields[] = {{3, 16, nullptr, list}};
const FootprintMessage port(portFields);
const Field moduleFields[] = {{2, 100}, {5, 100}};
const FootprintMessage module(moduleFields);
const Field scheduleFields[] = {{1, 64}};
const FootprintMessage schedule(scheduleFields);
const Field entryFields[] = {{3, 8, nullptr, 8}, {4, 8, nullptr, 8}, {5, 80, &schedule}};
const FootprintMessage entry(entryFields);
const Field planFields[] = {{2, 150},           {4, 250, &port},  {5, 250, &port},   {6, 100},
                            {7, 400, &weight}, {8, 450, &stage}, {9, 350, &module}, {10, 100}, {11, 200}, {12, 250, &entry}};

} // namespace

const FootprintMessage planFootprint(planFields);

} // namespace hpc::plan
