#pragma once
// A window that slides over images: that of a convolution or a max pooling, with SAME padding as
// core/net.h describes it.

#include "core/net.h"

namespace towers::cuda {

struct WindowShape {
  int batch = 0;
  Extent input, output;
  int size = 0;  // of the square window
  int stride = 1;
  int pad_top = 0, pad_left = 0;
};

}  // namespace towers::cuda
