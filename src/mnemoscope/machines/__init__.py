"""Many machines: workers in processes or on a cluster, shards for any scheduler, merging, stops in time."""

from mnemoscope.machines.shards import Shard, split
from mnemoscope.machines.slurm import array_script
from mnemoscope.machines.stopping import Stopped, deadline, stop_asked, stops_on_signals

__all__ = ["Shard", "Stopped", "array_script", "deadline", "split", "stop_asked", "stops_on_signals"]
