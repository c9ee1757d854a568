# The two commands of the README on bare Debian, with the build of torch for the CPU, which is small:
#   docker build --tag game_rl .
#   docker run --rm --volume "$PWD/runs:/game_rl/runs" game_rl            trains the demo
#   docker run --rm game_rl make test
# A container's /dev/shm of 64 MB is enough.
FROM debian:trixie-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git make python3-venv gcc libc6-dev python3-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /game_rl
COPY . .
ENV TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN make install
CMD ["make", "demo"]
