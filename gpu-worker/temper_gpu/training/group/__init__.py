"""A trainer of several ranks: processes under torchrun's elastic agent, which the GPU worker starts, asks and ends.

    GPU worker ── stdin ──► agent: everything imported, no weights; forks a group of ranks when asked to
        ╰── a socket of this user alone ──► rank 0, 1 …: the step's work in, the same manifest from each out

The ranks commit nothing. A group in which one is lost is ended; the next step starts another one.
"""

from temper_gpu.training.group.agent import run_agent
from temper_gpu.training.group.agent_process import AgentProcess
from temper_gpu.training.group.group_trainer import GroupTrainer
from temper_gpu.training.group.orders import GroupOrder, RankSettings

__all__ = ["AgentProcess", "GroupOrder", "GroupTrainer", "RankSettings", "run_agent"]
