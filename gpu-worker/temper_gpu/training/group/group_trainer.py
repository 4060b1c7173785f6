"""A trainer whose steps are made by a group of ranks. It commits what they agree on: there is one who commits."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from temper_gpu.commits.checkpoints import Manifest, publish_commit
from temper_gpu.contract import TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.model.models import Models
from temper_gpu.store import Store
from temper_gpu.training.group.agent_process import AgentProcess
from temper_gpu.training.group.channel import Message
from temper_gpu.training.group.group import IsCancelled, RankGroup
from temper_gpu.training.group.orders import RankSettings
from temper_gpu.training.trainer import Outcome, Stopwatch, Trainer


class GroupTrainer(Trainer):
    def __init__(
        self,
        library: Models,
        store: Store,
        device_lock: AbstractContextManager[object],
        sampler: Callable[[str], Mapping[str, str]],
        agent: AgentProcess,
        settings: RankSettings,
    ) -> None:
        super().__init__(library, store, device_lock, sampler)
        self._agent = agent
        self._settings = settings
        self._group: RankGroup | None = None

    def forget(self) -> None:
        """With the ranks goes what they hold."""
        super().forget()
        if self._group is not None:
            self._group.close()
        self._group = None

    def train(self, work: TrainInput, is_cancelled: IsCancelled) -> Outcome:
        """start ranks → load → step → commit."""
        found = self._find(work.run, work.branch, work.step, work.inputs_sha256)
        if found is not None:
            return Outcome(found, True)
        clock = self._clock = Stopwatch("load")
        # Its engine's proof may start this process again, with other instructions: the ranks are to have the same.
        base = self._library.get(work.base_model)
        group = self._whole_group(is_cancelled)
        turn = Turn(self._device_lock, clock)
        recorded = dict(self._sampler(base.name))
        made = group.make(
            turn, is_cancelled, work=work.model_dump(by_alias=True, exclude_unset=True), recorded=recorded
        )
        clock.begin("commit")
        self._require_agreement(work, made)
        manifest = Manifest.model_validate_json(made[0].fields["manifest"])
        refs = [self._store.put_blob(blob) for blob in made[0].blobs]
        if refs != [manifest.adapter, manifest.optimizer]:
            raise TemperError("TrainerFailed", f"step {work.step} of {work.run}: rank 0 sent other bytes than it named")
        commit, created = publish_commit(self._store, work.run, manifest)
        clock.begin("publish")
        return Outcome(commit, not created, clock.seconds, discarded=not created)

    def _whole_group(self, is_cancelled: IsCancelled) -> RankGroup:
        if self._group is not None and not self._group.is_whole():
            self._group = None
        if self._group is None:
            self._group = RankGroup(self._agent, self._settings, is_cancelled)
        return self._group

    def _require_agreement(self, work: TrainInput, made: list[Message]) -> None:
        """Ranks add the same numbers in the same order: where one comes to other bits, something is broken."""
        if len({message.fields["manifest"] for message in made}) == 1:
            return
        self.forget()
        raise TemperError(
            "TrainerFailed",
            f"the ranks of step {work.step} of {work.run} must come to the same bytes, but did not; nothing was "
            "committed, and a retry makes the step with new ranks: look at the devices' health if it happens again",
        )


class Turn:
    """The device lock, and what people see of the wait for it."""

    def __init__(self, device_lock: AbstractContextManager[object], clock: Stopwatch) -> None:
        self._device_lock = device_lock
        self._clock = clock

    def __enter__(self) -> None:
        self._clock.begin("wait")
        self._device_lock.__enter__()
        self._clock.begin("train")

    def __exit__(self, *error: object) -> None:
        self._device_lock.__exit__(*error)  # pyright: ignore[reportArgumentType]  (as it was given)
