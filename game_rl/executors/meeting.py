"""How controller and nodes of a cluster exchange files: a shared file system, or storage."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from game_rl.executors.attempt import Order
from game_rl.executors.courier import Courier
from game_rl.executors.demand import Demand
from game_rl.executors.executor import Job
from game_rl.executors.game_needs import game_needs
from game_rl.executors.node import Needs, marked
from game_rl.executors.storage_needs import marked_storage
from game_rl.run_dir import RunDir
from game_rl.storage.object_store import ObjectStore


@dataclass(frozen=True)
class Meeting:
    """The parts of an executor that depend on how files are exchanged.

    Attributes:
        needs: what every node must have.
        make_order: makes the order for a job, once the node can read the job's files.
        bring_home: fetches what an attempt at a job has left, once it has ended.
    """

    needs: Needs
    make_order: Callable[[Job], Order]
    bring_home: Callable[[Job], None]


@contextmanager
def shared_files(demand: Demand) -> Iterator[Meeting]:
    """Exchange files in a file system that all nodes share, at the same paths."""
    with marked(demand.folder) as needs:
        order = _order(demand, needs)
        yield Meeting(
            needs,
            lambda job: replace(order(job), folder=needs.folder),
            lambda _: None,
        )


@contextmanager
def shared_storage(address: str, demand: Demand) -> Iterator[Meeting]:
    """Exchange files through a folder in storage, which is emptied unless attempts are under way.

    Raises:
        StorageError: the storage cannot be used.
        GameFileError: a file of the members' game is missing here.
    """
    name = f"errands/{RunDir(demand.folder).identity().id}"
    store = ObjectStore.below(address, name)
    with marked_storage(store, game_needs(demand.game), demand.disk_bytes) as needs:
        courier, order = Courier(demand.folder, store, demand.warn), _order(demand, needs)
        courier.take_back()
        yield Meeting(
            needs,
            lambda job: replace(order(job), errand=courier.begin(job)),
            courier.end,
        )
    courier.close()


def _order(demand: Demand, needs: Needs) -> Callable[[Job], Order]:
    niceness = os.getpriority(os.PRIO_PROCESS, 0)

    def order(job: Job) -> Order:
        return Order(
            job=job,
            needs=needs,
            niceness=niceness,
            has_gpu=demand.gpus > 0,
            patience_s=demand.patience_s,
        )

    return order
