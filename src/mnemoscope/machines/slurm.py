"""Script of a Slurm array: one task for every shard, put back into the queue when its time is up."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

__all__ = ["array_script"]

_SCRIPT = """\
#!/bin/bash
# One task for every shard. Change time, memory and partition to your cluster's, load what Mnemoscope needs where it
# says so below, then: sbatch FILE
#SBATCH --job-name={name}
#SBATCH --array=1-{shards}
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%A_%a.log
# Two minutes before the time is up: a checkpoint is written, and the task goes back into the queue.
#SBATCH --signal=B:USR1@120

# Here: module load .., source .venv/bin/activate
export OMP_NUM_THREADS=${{SLURM_CPUS_PER_TASK:-1}}
stopped= again= told= child=
tell() {{ [ -n "$stopped" ] && [ -n "$child" ] && [ -z "$told" ] && told=yes && kill -USR1 "$child"; }}
trap 'stopped=yes; again=yes; tell' USR1
trap 'stopped=yes; tell' TERM # of scancel and of preemption, where Slurm itself says what comes next
{command} --shard "$SLURM_ARRAY_TASK_ID/{shards}" &
child=$!
tell # the signal may have come before the program had its number
while true; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break # a signal ends `wait`, and not the program
done
[ "$code" -gt 128 ] && {{ wait "$child"; code=$?; }} # what `wait` said was of the signal
if [ -n "$again" ] && [ "$code" -ne 0 ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
fi
exit "$code"
# When all are done: {merge}
"""


def array_script(name: str, command: Sequence[str], merge: Sequence[str], shards: int) -> str:
    """Return a script for `sbatch` that runs a command once for every shard.

    Parameters
    ----------
    name
        Of the job.
    command
        What a task runs; ``--shard K/N`` is added.
    merge
        What puts the results together, named at the end.
    shards
        How many.
    """
    return _SCRIPT.format(name=name, shards=shards, command=shlex.join(command), merge=shlex.join(merge))
