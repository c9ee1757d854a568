"""Measured constants of the estimate, each with its source.

`python -m benchmarks.preflight_accuracy` measures real runs against the estimate that they make;
run it when Python, torch, SB3 or the operating system change by a major version.

Measured on Linux 6 (x86-64, glibc), Python 3.11, torch 2.13 (CPU build), SB3 2.9, PyBoy 2.8.
MB = 10^6 bytes, proportional set size.
"""

from game_rl.system.units import GIB, MIB

# What the training process shares with its workers of the memory that importing takes
# (`game_rl.system.import_cost`), and which counts in part for each of them. Measured with torch's
# build for CPUs: importing takes 274 MB, and the training process 240 MB once it has a network.
SHARED_WITH_WORKERS_BYTES = 34_000_000
# Code, threads and buffers of torch that the first update loads, and the heaps of the threads that
# compute gradients. A compromise: by benchmarks.preflight_accuracy one machine took less in some
# hours and more in others.
FIRST_UPDATE_BYTES = 100_000_000
# Kernels that are compiled on a CPU for recurrent layers, one for each shape of padded sequences.
# Their number grows for some 30,000 timesteps. Measured with courier_memory_ppo over 100,000, and
# with an LSTM of 256 units on duel over 20,000.
RECURRENT_KERNELS_BYTES = 20_000_000
# The processes that Python starts in addition for the workers: the forkserver, which holds the
# pages that they share, and the resource tracker.
FORKSERVER_BYTES = 60_000_000
# Unshared pages of each process that runs emulators.
WORKER_BYTES = 13_000_000
# The same where workers are not forked (macOS, Windows), and the process that Python starts for
# shared memory. Compared on Linux with five runs in that form (docs/reference/platforms.md).
SPAWNED_WORKER_BYTES = 38_000_000
RESOURCE_TRACKER_BYTES = 8_000_000
# Each emulator and its environment, without the ROM.
EMULATOR_BYTES = 1_000_000

# glibc returns blocks of at least this size to the system when they are freed. Smaller ones stay
# in the process, ready for reuse (`game_rl.system.process_memory`).
ALLOCATOR_THRESHOLD_BYTES = 32 * MIB
# Blocks of a gradient step are allocated and freed in an order that leaves holes in the heaps. The
# holes take this share of the small blocks that are alive at the worst moment, and one gradient
# (two more if a minibatch goes through in micro-batches). The shares were searched in steps of 0.1
# and the gradients in whole ones, together with the memory of the first update: these minimise the
# largest error in the first 36 rows of benchmarks/preflight_accuracy.py, each row run two or three
# times.
# "unfolded" is bfloat16 on a processor without AVX512, from rows 0, 7, 30 and 36.
HEAP_HOLES = {"float32": 0.9, "bf16": 0.6, "unfolded": 1.2}
HOLES_OF_GRADIENTS = 1
HOLES_OF_MICRO_BATCHES = 2
# Of the blocks of RAdam's step, as many stay with the main thread while other threads compute
# gradients; the numbers with the smallest errors in the PQN rows on whole pictures (50, 60, and
# those drawn with --seed 1 and 2), where a block is 29 MB.
RADAM_BLOCKS_KEPT = {"float32": 3, "bf16": 4}
# Memory that each thread that computes gradients keeps when all its blocks are freed: its heaps
# have 64 MiB (glibc's HEAP_MAX_SIZE), and all but the first are returned.
HEAP_TOP_BYTES = 64 * MIB

# Measured on one H200 with torch 2.11 for CUDA 13 (`benchmarks.preflight_accuracy --device cuda`):
# what CUDA's context takes of the GPU once cuDNN and cuBLAS are loaded, and in the process; what
# the libraries' workspaces take however small the network is; and how much torch's allocator
# reserves for the tensors of a gradient step. cuDNN's workspaces depend on the algorithms that it
# chooses, so the reserved memory of 18 rows was up to a sixth less or more than this.
CUDA_CONTEXT_BYTES = 800_000_000
CUDA_HOST_BYTES = 1_000_000_000
CUDA_WORKSPACE_BYTES = 75_000_000
CUDA_STEP_FACTORS = {"float32": 1.9, "bf16": 1.6}

# Files other than checkpoints (for those see `game_rl.checkpoints.checkpoint_files`): number of
# curves of SB3 and of the machine that every update adds to, without one for each variable and
# reward term of the game; bytes of one number of a curve in TensorBoard.
UPDATE_NUMBERS = 21
TENSORBOARD_NUMBER_BYTES = 57
# progress.csv: bytes of a number or an empty field. monitor.csv: bytes of an episode.
PROGRESS_NUMBER_BYTES = 10
MONITOR_EPISODE_BYTES = 60
# An evaluation of 20 episodes, or a checkpoint: its event, its curves, its rows in eval.csv and
# evaluations.npz with their copies in checkpoints.
EVALUATION_BYTES = 1_000
# Lines of events.jsonl, measured on those with the most digits: that of a rollout, and of each
# number of the line with training curves.
EVENT_ROLLOUT_BYTES = 160
EVENT_NUMBER_BYTES = 36
# config.yaml, preflight.json, footprint.json, run.json, the run's first and last events
RUN_FILES_BYTES = 4_000

# Room that must stay free for a verdict of "fits": for other programs, and for what the formulas
# leave out.
RAM_MARGIN_FRACTION = 0.10
RAM_MARGIN_BYTES = 512 * MIB
VRAM_MARGIN_FRACTION = 0.05
DISK_MARGIN_BYTES = GIB
# Two measurements of random play of duel took 237 and 275 bytes a timestep
# (docs/research/replay.md).
LAKE_MARGIN_FRACTION = 0.2
