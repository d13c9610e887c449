#include "cpu/chain.h"

#include <algorithm>

namespace towers::cpu {
namespace {

constexpr std::size_t kPieceSize = 8192;

}  // namespace

Chain::Chain(const Net& net, const VariableLayout& layout, std::size_t begin, std::size_t end,
             LayerSetting setting)
    : setting_(setting) {
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
  blocks_ = std::min(kBlocks, setting_.batch_size);
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
    const Layout in_layout = link.layer->input_layout();
    if (l > begin || !in_layout.is_contiguous())
      link.in = make_tensor(in_layout, setting_.training && link.layer->keeps_input());
    const Layout gradient_layout = link.layer->output_gradient_layout();
    if (setting_.training && (l + 1 < end || !gradient_layout.is_contiguous()))
      link.d_out = make_tensor(gradient_layout, false);
    links_.push_back(std::move(link));
  }
}

Chain::Tensor Chain::make_tensor(const Layout& layout, bool whole_batch) const {
  const std::size_t stride = (layout.size() + 15) / 16 * 16;
  const int count = whole_batch ? setting_.batch_size : setting_.pool->threads();
  return {layout, whole_batch, stride,
          setting_.memory->floats(stride * static_cast<std::size_t>(count))};
}

void Chain::prepare(std::span<const float> variables) {
  for (Link& link : links_) link.layer->prepare(variables);
}

void Chain::forward(const float* in, float* out, int images, bool keep_activations) {
  setting_.pool->parallel_for(images, [&](int image, int worker) {
    forward_image(in, out, keep_activations, {image, worker});
  });
}

ConstView Chain::input_of(std::size_t l, const float* in, Place place) const {
  if (links_[l].in.stride != 0) return links_[l].in.view(place);
  return contiguous(in + input_.size() * static_cast<std::size_t>(place.image), input_);
}

void Chain::forward_image(const float* in, float* out, bool keep_activations, Place place) {
  const std::size_t image = static_cast<std::size_t>(place.image);
  if (links_[0].in.stride != 0)
    copy_image(contiguous(in + input_.size() * image, input_), links_[0].in.view(place), input_);
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const View to = l + 1 < links_.size() ? links_[l + 1].in.view(place)
                                          : contiguous(out + output_.size() * image, output_);
    links_[l].layer->forward(input_of(l, in, place), to, place);
    const Extent& extent = links_[l].output;
    if (keep_activations && !links_[l].activations.empty())
      copy_image(to, contiguous(links_[l].activations.data() + extent.size() * image, extent),
                 extent);
  }
}

void Chain::backward(const float* in, const float* d_out, float* d_in,
                     std::span<const float> variables, std::span<float> gradients) {
  setting_.pool->parallel_for(blocks_, [&](int block, int worker) {
    const std::span<float> partial =
        partials_.subspan(partial_size_ * static_cast<std::size_t>(block), partial_size_);
    const int first = setting_.batch_size * block / blocks_;
    const int last = setting_.batch_size * (block + 1) / blocks_;
    for (int image = first; image < last; ++image)
      backward_image(in, d_out, d_in, partial, image != first, {image, worker});
  });
  sum_partials(variables, gradients);
}

void Chain::backward_image(const float* in, const float* d_out, float* d_in,
                           std::span<float> partial, bool accumulate, Place place) {
  const std::size_t image = static_cast<std::size_t>(place.image);
  ConstView d = contiguous(d_out + output_.size() * image, output_);
  if (const Tensor& wanted = links_.back().d_out; wanted.stride != 0) {
    copy_image(d, wanted.view(place), output_);
    d = wanted.view(place);
  }
  for (std::size_t l = links_.size(); l-- > 0;) {
    View to;
    if (l > 0)
      to = links_[l - 1].d_out.view(place);
    else if (d_in != nullptr)
      to = contiguous(d_in + input_.size() * image, input_);
    links_[l].layer->backward({input_of(l, in, place), d, to, partial, accumulate}, place);
    d = to;
  }
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
