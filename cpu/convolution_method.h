#pragma once
// Which algorithm computes a convolution.

#include <string>

#include "core/net.h"

namespace towers::cpu {

enum class ConvolutionMethod { automatic, direct, winograd2, winograd4 };

// By --convolution's names. Throws UsageError naming them.
ConvolutionMethod parse_convolution_method(const std::string& name);

// The method for one layer, never `automatic`: what `wish` names where the shape allows it (5 x 5
// kernels at stride 1), direct elsewhere; of `automatic`, the fastest as measured.
ConvolutionMethod choose_convolution_method(ConvolutionMethod wish, const Convolution& convolution,
                                            const Extent& input);

}  // namespace towers::cpu
