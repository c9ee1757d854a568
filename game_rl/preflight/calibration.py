"""Measured constants of the estimate, each with where it comes from.

`python -m benchmarks.preflight_accuracy` measures real runs against the estimate that they make;
run it when Python, torch, SB3 or the operating system change by a major version.

Measured on Linux 6 (x86-64, glibc), Python 3.11, torch 2.13 (CPU build), SB3 2.9, PyBoy 2.8.
MB = 10^6 bytes, proportional set size.
"""

from game_rl.system.units import GIB, MIB

# The training process with torch, SB3, TensorBoard and PyBoy imported and a first network made.
MAIN_PROCESS_BYTES = 240_000_000
# Code, threads and buffers of torch that the first update brings in, and the heaps of the threads
# that compute gradients.
FIRST_UPDATE_BYTES = 100_000_000
# What Python starts beside it for the workers: the forkserver, which holds the pages that they
# share, and the resource tracker.
FORKSERVER_BYTES = 60_000_000
# Each process that runs emulators, in pages of its own.
WORKER_BYTES = 13_000_000
# Each emulator and its environment, without the ROM.
EMULATOR_BYTES = 1_000_000

# glibc gives blocks from this size up back to the system when they are freed; smaller ones stay
# in the process, ready for use again (`game_rl.system.allocator`).
ALLOCATOR_THRESHOLD_BYTES = 32 * MIB
# Blocks of a gradient step come and go in the heaps in an order that leaves holes: this share of
# what is alive in small blocks at its worst moment, and a gradient (two more if a minibatch is gone
# through in micro-batches). Of steps of 0.1 and whole gradients these, with the memory of the first
# update, leave the smallest of the largest errors in the first 36 rows of
# benchmarks/preflight_accuracy.py, each of them run two or three times.
HEAP_HOLES = {"float32": 0.9, "bf16": 0.6}
HOLES_OF_GRADIENTS = 1
HOLES_OF_MICRO_BATCHES = 2
# What stays with the process of each thread that computes gradients when all is freed: its heaps
# are of 64 MiB (glibc's HEAP_MAX_SIZE), and all but the first are given back.
HEAP_TOP_BYTES = 64 * MIB

# Of a clip in the making, each picture until the last one is there, compressed: 1,900 bytes of
# seasons, 2,800 of duel, 3,300 of beacon in random play.
RECORDED_PICTURE_BYTES = 3_300

# Not measured here but reported: the CUDA context with its kernels on the GPU and in the process
# (discuss.pytorch.org/t/73021 says 723 MiB on the GPU), and what cuDNN and the caching allocator
# take on top of the tensors. torch.cuda.max_memory_reserved() of a run tells.
CUDA_CONTEXT_BYTES = 700_000_000
CUDA_HOST_BYTES = 1_000_000_000
CUDA_ALLOCATOR_FACTOR = 1.15

# On disk, beside checkpoints (`game_rl.checkpoints.size`). TensorBoard: one number of a curve; the
# curves of SB3 and of the machine that every update adds to, beside one for each variable and
# reward term of the game; the curves of an evaluation, and one for each way if there are two.
TENSORBOARD_NUMBER_BYTES = 57
TENSORBOARD_UPDATE_NUMBERS = 17
TENSORBOARD_EVALUATION_NUMBERS = 3
EVALUATION_ROW_BYTES = 60
# evaluations.npz: reward (float32), length (int32) and success of an episode; the timesteps of an
# evaluation; names and shapes of its four arrays.
EVALUATION_EPISODE_BYTES = 9
EVALUATION_TIMESTEPS_BYTES = 8
EVALUATION_FILE_BYTES = 1_020
BASE64_FACTOR = 4 / 3  # of its copy in a checkpoint
# Lines of events.jsonl, those with the most digits.
EVENT_ROLLOUT_BYTES = 160
EVENT_EVALUATION_BYTES = 330
EVENT_CHECKPOINT_BYTES = 280
# config.yaml, preflight.json, footprint.json, run.json, the run's first and last events
RUN_FILES_BYTES = 4_000
# One picture of a clip, 320 x 288: a fight of duel. A walk through beacon takes two thirds, a run
# through seasons twice as much, an agent that stands still nothing.
PICTURE_BYTES = {"gif": 1_200, "mp4": 500}

# What must stay free for a verdict of "fits": for other programs, and for what no formula sees.
RAM_MARGIN_FRACTION = 0.10
RAM_MARGIN_BYTES = 512 * MIB
VRAM_MARGIN_FRACTION = 0.05
DISK_MARGIN_BYTES = GIB
