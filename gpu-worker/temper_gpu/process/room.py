"""Room for one more base model beside those that a GPU worker holds."""

from collections.abc import Callable

from transformers import PreTrainedModel

from temper_gpu.model.memory import total_bytes
from temper_gpu.model.memory_plan import process_part
from temper_gpu.process.needs import USUAL_LORA, Machine, plan_serving, refuse_without_room


class Room:
    """By the memory plan: weights, policies and the key-value cache of each model that is loaded. What is free at a
    moment says less, because a cache grows with the requests."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._needs: dict[str, int] = {}
        # What holds models: which ones, and a way to close one that nobody uses (False: all are in use).
        self.loaded: Callable[[], list[str]] = list
        self.close_idle: Callable[[], bool] = lambda: False

    def require(self, name: str, model: PreTrainedModel) -> None:
        """Before weights are read. Refuses what could not fit alone; closes idle models for what does not fit beside
        them. If all are in use it may be too much, and then fails as any lack of memory does: it is tried again."""
        machine = self._machine
        refuse_without_room(machine, name, model)
        own, total = process_part(machine.device).num_bytes, total_bytes(machine.device)
        self._needs[name] = plan_serving(model, machine, USUAL_LORA, None).num_bytes - own
        while total is not None and own + self._held() + self._needs[name] > total and self.close_idle():
            pass

    def _held(self) -> int:
        return sum(self._needs.get(name, 0) for name in self.loaded())
