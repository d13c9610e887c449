# towers on the CPU: docker build -f packaging/docker/cpu.Dockerfile -t towers .
# docker run --rm -v $PWD/data:/data -v $PWD/runs:/runs towers --data_dir=/data --train_dir=/runs/run1
FROM debian:12-slim AS build
COPY . /src
RUN /src/scripts/package --no-cuda

FROM debian:12-slim
COPY --from=build /src/build/packages/towers_*.deb /tmp/
RUN apt-get update && apt-get install -y /tmp/towers_*.deb && rm -rf /tmp/*.deb /var/lib/apt/lists/*
ENTRYPOINT ["towers"]
