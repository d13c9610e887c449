#include "cpu/chain.h"

#include <algorithm>

namespace towers::cpu {
namespace {

constexpr std::size_t kPieceSize = 8192;

// In calls of at most `longest_run` images.
template <class Call>
void for_each_call(int longest_run, const Run& whole, Call call) {
  for (int image = 0; image < whole.count; image += longest_run)
    call({whole.first + image, std::min(longest_run, whole.count - image), whole.worker});
}

void copy_images(ConstView from, View to, const Extent& extent, int count) {
  for (int image = 0; image < count; ++image) copy_image(from.of(image), to.of(image), extent);
}

}  // namespace

Chain::Chain(const Net& net, const VariableLayout& layout, std::size_t begin, std::size_t end,
             LayerSetting setting)
    : setting_(setting), first_layer_(begin) {
  const std::vector<Extent> extents = output_extents(net);
  input_ = begin == 0 ? net.input : extents[begin - 1];
  output_ = extents[end - 1];

  // The chain's variables lie side by side in the layout.
  std::size_t last = 0;
  bool found = false;
  for (const Variable& v : layout.variables()) {
    if (v.layer < begin || v.layer >= end) continue;
    if (!found) setting_.gradient_origin = v.offset;
    found = true;
    last = v.offset + v.size;
    for (std::size_t at = v.offset; at < last; at += kPieceSize)
      pieces_.push_back({at, std::min(at + kPieceSize, last), static_cast<float>(v.weight_decay)});
  }
  blocks_ = blocks_of(setting_.batch_size);
  if (found && setting_.training) {
    partial_size_ = (last - setting_.gradient_origin + 15) / 16 * 16;
    partials_ = setting_.memory->floats(partial_size_ * static_cast<std::size_t>(blocks_));
  }

  LayerSetting layer_setting = setting_;
  for (std::size_t l = begin; l < end; ++l) {
    const Layer& layer = net.layers[l];
    const Extent in = l == begin ? input_ : extents[l - 1];
    if (l > begin) {
      layer_setting.relu_input = has_relu(net.layers[l - 1]);
      layer_setting.wants_input_gradient = setting_.training;
    }
    Link link{layer.name, nullptr, extents[l], {}, {}, {}};
    if (const auto* convolution = std::get_if<Convolution>(&layer.op)) {
      link.layer = make_conv2d(*convolution, in, extents[l], layout.find(layer.name + "/weights"),
                               layout.find(layer.name + "/biases"), layer_setting);
      if (setting_.training)
        link.activations = setting_.memory->floats(extents[l].size() *
                                                   static_cast<std::size_t>(setting_.batch_size));
    } else if (const auto* pool = std::get_if<MaxPool>(&layer.op)) {
      link.layer = make_max_pool(*pool, in, extents[l], layer_setting);
    } else {
      link.layer =
          make_local_response_norm(std::get<LocalResponseNorm>(layer.op), in, layer_setting);
    }
    longest_run_ = std::max(longest_run_, link.layer->longest_run());
    if (l == begin || link.layer->longest_run() > 1 || sections_.back().longest_run > 1)
      sections_.push_back({l - begin, l - begin, link.layer->longest_run()});
    ++sections_.back().end;
    links_.push_back(std::move(link));
  }
  for (std::size_t l = 0; l < links_.size(); ++l) lay_out(l);
}

// Where a layer's input and its output's gradient lie.
void Chain::lay_out(std::size_t l) {
  Link& link = links_[l];
  // What passes from layer to layer within a section is one image.
  const auto between = [&](std::size_t from) {
    for (const Section& s : sections_)
      if (s.begin <= from && from + 1 < s.end) return 1;
    return longest_run_;
  };
  const Layout in = link.layer->input_layout();
  if (l > 0 || !in.is_contiguous()) {
    const bool keep = setting_.training && link.layer->keeps_input();
    link.in = make_tensor(in, keep ? 0 : l > 0 ? between(l - 1) : longest_run_);
  }
  const Layout gradient = link.layer->output_gradient_layout();
  if (setting_.training && (l + 1 < links_.size() || !gradient.is_contiguous()))
    link.d_out = make_tensor(gradient, between(l));
}

Chain::Tensor Chain::make_tensor(const Layout& layout, int per_worker) const {
  const int images = per_worker == 0 ? setting_.batch_size : per_worker * setting_.pool->threads();
  return {layout, per_worker, layout.stride(), setting_.memory->floats(layout.buffer_size(images))};
}

View Chain::Tensor::view(const Run& run, const Run& whole) const {
  const int image = per_worker == 0   ? run.first
                    : per_worker == 1 ? run.worker
                                      : run.worker * per_worker + run.first - whole.first;
  return layout.view(buffer.data() + stride * static_cast<std::size_t>(image),
                     static_cast<std::ptrdiff_t>(stride));
}

void Chain::prepare(std::span<const float> variables) {
  for (Link& link : links_) link.layer->prepare(variables);
}

void Chain::forward(const float* in, float* out, int images, bool keep_activations) {
  // Short where long runs would leave threads without work.
  const int length = std::clamp(images / (2 * setting_.pool->threads()), 1, longest_run_);
  setting_.pool->parallel_for((images + length - 1) / length, [&](int run, int worker) {
    const int first = run * length;
    forward_run({in, out, keep_activations}, {first, std::min(length, images - first), worker});
  });
}

ConstView Chain::input_of(std::size_t l, const float* in, const Run& run, const Run& whole) const {
  if (links_[l].in.stride != 0) return links_[l].in.view(run, whole);
  return contiguous(in, input_).of(run.first);
}

void Chain::forward_run(const ForwardPass& pass, const Run& whole) {
  if (links_[0].in.stride != 0)
    copy_images(contiguous(pass.in, input_).of(whole.first), links_[0].in.view(whole, whole),
                input_, whole.count);
  for (const Section& section : sections_)
    for_each_call(section.longest_run, whole, [&](const Run& run) {
      for (std::size_t l = section.begin; l < section.end; ++l) forward_layer(l, pass, run, whole);
    });
}

void Chain::forward_layer(std::size_t l, const ForwardPass& pass, const Run& run,
                          const Run& whole) {
  const LayerClock::Lap lap(setting_.clock, Pass::forward, first_layer_ + l, run.worker);
  const View to = l + 1 < links_.size() ? links_[l + 1].in.view(run, whole)
                                        : contiguous(pass.out, output_).of(run.first);
  const Link& link = links_[l];
  link.layer->forward(input_of(l, pass.in, run, whole), to, run);
  if (pass.keep_activations && !link.activations.empty())
    copy_images(to, contiguous(link.activations.data(), link.output).of(run.first), link.output,
                run.count);
}

void Chain::backward(const float* in, const float* d_out, float* d_in,
                     std::span<const float> variables, std::span<float> gradients) {
  setting_.pool->parallel_for(blocks_, [&](int block, int worker) {
    const std::span<float> partial =
        partials_.subspan(partial_size_ * static_cast<std::size_t>(block), partial_size_);
    const int first = setting_.batch_size * block / blocks_;
    const int last = setting_.batch_size * (block + 1) / blocks_;
    for (int image = first; image < last; image += longest_run_) {
      const int count = std::min(longest_run_, last - image);
      backward_run({in, d_out, d_in, partial, image == first, image + count == last},
                   {image, count, worker});
    }
  });
  sum_partials(variables, gradients);
}

void Chain::backward_run(const BackwardPass& pass, const Run& whole) {
  if (const Tensor& wanted = links_.back().d_out; wanted.stride != 0)
    copy_images(contiguous(pass.d_out, output_).of(whole.first), wanted.view(whole, whole), output_,
                whole.count);
  for (std::size_t s = sections_.size(); s-- > 0;)
    for_each_call(sections_[s].longest_run, whole, [&](const Run& run) {
      for (std::size_t l = sections_[s].end; l-- > sections_[s].begin;)
        backward_layer(l, pass, run, whole);
    });
}

void Chain::backward_layer(std::size_t l, const BackwardPass& pass, const Run& run,
                           const Run& whole) {
  const LayerClock::Lap lap(setting_.clock, Pass::backward, first_layer_ + l, run.worker);
  const Tensor& from = links_[l].d_out;
  View to;
  if (l > 0)
    to = links_[l - 1].d_out.view(run, whole);
  else if (pass.d_in != nullptr)
    to = contiguous(pass.d_in, input_).of(run.first);
  RunGradients gradients;
  gradients.in = input_of(l, pass.in, run, whole);
  gradients.d_out = from.stride != 0 ? ConstView(from.view(run, whole))
                                     : contiguous(pass.d_out, output_).of(run.first);
  gradients.d_in = to;
  gradients.weights = pass.partial;
  gradients.begins = pass.begins && run.first == whole.first;
  gradients.ends = pass.ends && run.first + run.count == whole.first + whole.count;
  links_[l].layer->backward(gradients, run);
}

void Chain::sum_partials(std::span<const float> variables, std::span<float> gradients) {
  setting_.pool->parallel_for(static_cast<int>(pieces_.size()), [&](int task, int) {
    const Piece& piece = pieces_[static_cast<std::size_t>(task)];
    setting_.kernels->update.sum_parts(
        piece.end - piece.begin, partials_.data() + (piece.begin - setting_.gradient_origin),
        partial_size_, blocks_, piece.decay == 0 ? nullptr : variables.data() + piece.begin,
        piece.decay, gradients.data() + piece.begin);
  });
}

const float* Chain::activations(const std::string& layer) const {
  const auto found = std::find_if(links_.begin(), links_.end(), [&](const Link& link) {
    return link.name == layer && !link.activations.empty();
  });
  return found == links_.end() ? nullptr : found->activations.data();
}

}  // namespace towers::cpu
