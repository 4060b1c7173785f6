"""Room for one more base model beside those that a GPU worker has loaded."""

from collections.abc import Callable

from transformers.modeling_utils import PreTrainedModel

from temper_gpu.model.memory import total_bytes
from temper_gpu.model.memory_plan import process_part
from temper_gpu.process.needs import USUAL_LORA, Machine, plan_serving, refuse_without_room


class Room:
    """Adds up the memory plans of the loaded models: weights, policies, key-value cache. Free memory says less, because
    a cache grows with the requests."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._needs: dict[str, int] = {}
        # Names of the loaded models, and a function that closes an idle one (False: all are in use).
        self.loaded: Callable[[], list[str]] = list
        self.close_idle: Callable[[], bool] = lambda: False

    def require(self, name: str, model: PreTrainedModel) -> None:
        """Runs before weights are read. Refuses a model that cannot fit alone, and closes idle models for one that does
        not fit beside them. If all are in use, loading may run out of memory, and is then retried."""
        machine = self._machine
        refuse_without_room(machine, name, model)
        own, total = process_part(machine.device).num_bytes, total_bytes(machine.device)
        self._needs[name] = plan_serving(model, machine, USUAL_LORA, None).num_bytes - own
        while own + self._taken() + self._needs[name] > total and self.close_idle():
            pass

    def _taken(self) -> int:
        return sum(self._needs.get(name, 0) for name in self.loaded())
