"""Many machines: shards for any scheduler, and what a scheduler asks of a process."""

from mnemoscope.machines.shards import Shard, split
from mnemoscope.machines.slurm import array_script
from mnemoscope.machines.stopping import Stopped, deadline, stop_asked, stops_on_signals

__all__ = ["Shard", "Stopped", "array_script", "deadline", "split", "stop_asked", "stops_on_signals"]
