#pragma once
// TensorBoard event files: TFRecord frames of Event messages (data/protos/event.proto).

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/backend.h"
#include "core/net.h"
#include "data/histogram.h"

namespace towers::data {

// Appends to DIR/events.out.tfevents.SECONDS.HOST; the first record is the file version. Records
// are queued and written by a thread of the writer's own, flushed every few seconds, so that after
// a kill the file is readable up to the tear. Not thread-safe: one caller. Write errors come out of
// the next call as an Error with path and reason; the records concerned are lost, that of this call
// too, later ones are tried again. A file of the same second is never written over: the name gets
// ".PID.N" behind it.
class EventFileWriter {
 public:
  // Makes `dir` where it lacks. Throws Error with path and reason.
  explicit EventFileWriter(const std::filesystem::path& dir,
                           std::chrono::milliseconds flush_interval = std::chrono::seconds(2));
  ~EventFileWriter();  // flushes; errors are lost, so call flush() first

  void add_graph(const std::string& serialized_graph_def);
  void add_session_start(
      std::int64_t step);  // SessionLog START: TensorBoard drops what follows `step`
  // Values added between begin_summary and end_summary go to one Event; elsewhere they are a
  // std::logic_error.
  void begin_summary(std::int64_t step);
  void scalar(const std::string& tag, float value);
  void histogram(const std::string& tag, const Histogram& histogram);
  void end_summary();
  void flush();  // waits until all is written and synced

  const std::filesystem::path& path() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A TFRecord frame: length (8 bytes), its masked CRC-32C, the data, its masked CRC-32C.
std::string frame_record(std::string_view data);

// A GraphDef of the training net, with a name scope per tower and layer and device fields, for
// TensorBoard's Graphs tab. device_of_tower: full names.
std::string graph_def(const Net& net, const std::vector<std::string>& device_of_tower,
                      int batch_size);

}  // namespace towers::data
