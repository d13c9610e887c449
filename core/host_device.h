#pragma once
// Marks arithmetic that CUDA kernels share with the host; plain compilers see nothing.

#ifdef __CUDACC__
#define TOWERS_HD __host__ __device__
#else
#define TOWERS_HD
#endif
