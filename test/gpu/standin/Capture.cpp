// The functions of capture and of graphs under their own names.
#include "test/gpu/standin/Capture.h"

using namespace hpc::cuda;
using standin::Capture;
using standin::Machine;
using standin::Record;
using standin::Running;

namespace hpc::cuda {
struct GraphState {
  std::shared_ptr<Capture> capture;
};
struct GraphRunState {
  std::shared_ptr<Capture> capture;
  std::vector<std::unique_ptr<StreamState>> lanes;
};
} // namespace hpc::cuda

namespace standin {

std::mutex &captureMutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}

namespace {

std::shared_ptr<Capture> &ofThisThread() {
  static thread_local std::shared_ptr<Capture> capture;
  return capture;
}

} // namespace

DriverResult forbiddenNow() {
  std::lock_guard<std::mutex> lock(captureMutex());
  std::shared_ptr<Capture> &mine = ofThisThread();
  if (!mine || !mine->isThreadLocal)
    return driverSuccess;
  mine->isInvalid = true;
  return driverCaptureUnsupported;
}

size_t Capture::laneOf(StreamState *stream) {
  for (size_t lane = 0; lane < streams.size(); ++lane)
    if (streams[lane] == stream)
      return lane;
  streams.push_back(stream);
  works.push_back(0);
  known.emplace_back();
  return streams.size() - 1;
}

void Capture::add(StreamState *stream, const std::string &what, std::function<void(const Running &)> work) {
  const size_t lane = laneOf(stream);
  nodes.push_back({Work, lane, what, std::move(work)});
  known[lane].resize(std::max(known[lane].size(), lane + 1), 0);
  known[lane][lane] = ++works[lane];
}

size_t Capture::record(StreamState *stream) {
  const size_t lane = laneOf(stream);
  nodes.push_back({Record, lane, "record", nullptr, edges});
  knownByEdge.push_back(known[lane]);
  return edges++;
}

void Capture::wait(StreamState *stream, size_t edge) {
  const size_t lane = laneOf(stream);
  nodes.push_back({Wait, lane, "wait", nullptr, edge});
  const std::vector<size_t> &other = knownByEdge[edge];
  known[lane].resize(std::max(known[lane].size(), other.size()), 0);
  for (size_t i = 0; i < other.size(); ++i)
    known[lane][i] = std::max(known[lane][i], other[i]);
}

bool Capture::isJoined() const {
  for (size_t lane = 0; lane < works.size(); ++lane)
    if (works[lane] > (lane < known[0].size() ? known[0][lane] : 0))
      return false;
  return true;
}

} // namespace standin

namespace {

#define ENTER(FAILURE)                                                                                                 \
  if (int failure = Machine::instance().enter(__func__, FAILURE))                                                      \
  return failure

std::function<void(const Running &)> recording(std::shared_ptr<Record> record) {
  return [record](const Running &running) {
    Machine &machine = Machine::instance();
    std::lock_guard<std::mutex> lock(machine.recordsMutex);
    record->done = true;
    record->clock = running.clock;
    machine.recorded.notify_all();
  };
}

std::function<void(const Running &)> waiting(std::shared_ptr<Record> record) {
  return [record](const Running &running) {
    Machine &machine = Machine::instance();
    std::unique_lock<std::mutex> lock(machine.recordsMutex);
    machine.recorded.wait(lock, [&] { return record->done; });
    running.clock.join(record->clock);
  };
}

/// All lanes begin behind what the stream has, and the stream goes on behind all of them.
void start(GraphRunState &run, StreamState &stream) {
  const Capture &capture = *run.capture;
  auto begin = std::make_shared<Record>();
  stream.enqueue("graph begins", recording(begin), true);
  for (const std::unique_ptr<StreamState> &lane : run.lanes)
    lane->enqueue("graph begins", waiting(begin), true);
  std::vector<std::shared_ptr<Record>> edges(capture.edges);
  for (std::shared_ptr<Record> &edge : edges)
    edge = std::make_shared<Record>();
  for (const Capture::Node &node : capture.nodes) {
    StreamState &lane = *run.lanes[node.lane];
    if (node.kind == Capture::Work)
      lane.enqueue(node.what, node.work);
    else
      lane.enqueue(node.what, node.kind == Capture::Record ? recording(edges[node.edge]) : waiting(edges[node.edge]),
                   true);
  }
  for (const std::unique_ptr<StreamState> &lane : run.lanes) {
    auto end = std::make_shared<Record>();
    lane->enqueue("graph ends", recording(end), true);
    stream.enqueue("graph ends", waiting(end), true);
  }
}

constexpr DriverResult unknownError = 999;

} // namespace

extern "C" {

DriverResult cuStreamBeginCapture_v2(StreamHandle stream, int mode) {
  ENTER(unknownError);
  std::lock_guard<std::mutex> lock(standin::captureMutex());
  if (stream->capture || standin::ofThisThread())
    return driverCaptureUnsupported;
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->isThreadLocal = mode == captureThreadLocal;
  capture->laneOf(stream);
  stream->capture = capture;
  standin::ofThisThread() = capture;
  return driverSuccess;
}
DriverResult cuStreamEndCapture(StreamHandle stream, GraphHandle *graph) {
  *graph = nullptr;
  std::lock_guard<std::mutex> lock(standin::captureMutex());
  std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->origin != stream)
    return driverCaptureUnmatched;
  if (capture->thread != std::this_thread::get_id())
    return driverCaptureWrongThread;
  for (StreamState *one : capture->streams)
    one->capture.reset();
  capture->hasEnded = true;
  standin::ofThisThread().reset();
  ENTER(unknownError); // a capture that fails has ended
  if (capture->isInvalid)
    return driverCaptureInvalidated;
  if (!capture->isJoined())
    return driverCaptureUnjoined;
  *graph = new GraphState{capture};
  Machine::instance().count("graphs", 1);
  return driverSuccess;
}
DriverResult cuGraphDestroy(GraphHandle graph) {
  delete graph;
  Machine::instance().count("graphs", -1);
  return driverSuccess;
}
DriverResult cuGraphInstantiateWithFlags(GraphRunHandle *run, GraphHandle graph, unsigned long long) {
  ENTER(driverOutOfMemory);
  if (DriverResult forbidden = standin::forbiddenNow())
    return forbidden;
  auto made = std::make_unique<GraphRunState>();
  made->capture = graph->capture;
  for (StreamState *stream : graph->capture->streams)
    made->lanes.push_back(std::make_unique<StreamState>(stream->context));
  *run = made.release();
  Machine::instance().count("graphs that can run", 1);
  return driverSuccess;
}
DriverResult cuGraphExecDestroy(GraphRunHandle run) {
  delete run;
  Machine::instance().count("graphs that can run", -1);
  return driverSuccess;
}
DriverResult cuGraphLaunch(GraphRunHandle run, StreamHandle stream) {
  ENTER(unknownError);
  if (stream->context.error)
    return stream->context.error;
  ++Machine::instance().launchedGraphs;
  start(*run, *stream);
  return driverSuccess;
}
} // extern "C"
