#pragma once
// Arithmetic that CUDA kernels share with the host is marked TOWERS_HD; plain compilers see nothing.

#ifdef __CUDACC__
#define TOWERS_HD __host__ __device__
#else
#define TOWERS_HD
#endif
