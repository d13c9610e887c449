#pragma once
// Softmax cross-entropy.

#include <cstdint>

namespace towers::cpu {

// Mean over `images` of -log(softmax(logits)[label]); logits are [images][classes]. Writes its
// gradient, (softmax - one hot) / images, to d_logits.
double softmax_loss(const float* logits, const std::int32_t* labels, int images, int classes,
                    float* d_logits);

}  // namespace towers::cpu
