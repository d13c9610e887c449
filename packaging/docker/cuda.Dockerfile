# towers on NVIDIA GPUs: docker build -f packaging/docker/cuda.Dockerfile -t towers-cuda .
# docker run --rm --gpus=all -v $PWD/data:/data -v $PWD/runs:/runs towers-cuda --data_dir=/data --train_dir=/runs/run1
#
# Compiled with NVIDIA's image, whose cuDNN lacks cudnn-frontend's headers: they come with scripts/build --cuda,
# from PyPI, as the rest of the toolkit does where none is found.
FROM nvidia/cuda:13.0.1-cudnn-devel-ubuntu24.04 AS build
COPY . /src
RUN /src/scripts/package --cuda

FROM nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04
COPY --from=build /src/build/packages/*.deb /tmp/
RUN apt-get update && apt-get install -y /tmp/*.deb && rm -rf /tmp/*.deb /var/lib/apt/lists/*
ENTRYPOINT ["towers"]
