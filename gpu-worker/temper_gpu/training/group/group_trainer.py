"""A trainer that is rank 0 of a group. Its commits are those of a single trainer."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack

from temper_gpu.contract import TrainInput
from temper_gpu.failures import TemperError
from temper_gpu.model.models import Models
from temper_gpu.store import Store
from temper_gpu.training.examples import TurnReader, refuse_turns
from temper_gpu.training.group.group import Enter, RankGroup, RankSettings, prepare
from temper_gpu.training.ranks import IsCancelled, RankLost
from temper_gpu.training.ranks.joined import Joined
from temper_gpu.training.trainer import Outcome, Switching, Trainer


class GroupTrainer(Trainer):
    def __init__(
        self,
        library: Models,
        store: Store,
        device_lock: AbstractContextManager[object],
        sampler: Callable[[str], Mapping[str, str]],
        read_turns: TurnReader = refuse_turns,
        *,
        enter: Enter,
        settings: RankSettings,
        switching: Switching | None = None,
    ) -> None:
        self._joined = Joined(0, len(settings.devices), self._watch, settings.parts_on(0))
        super().__init__(library, store, device_lock, sampler, read_turns, self._joined, switching)
        self._enter = enter
        self._settings = settings
        self.group: RankGroup | None = None
        prepare(enter)

    def forget(self) -> None:
        """Ends the ranks with the memory that they hold."""
        super().forget()
        self.close()

    def close(self) -> None:
        group, self.group = self.group, None
        if group is not None:
            group.close()
        self._joined.leave()
        if self._settings.worker.engine.shard_base_model:
            # Sharded weights are spread over ranks that are gone.
            self._loaded = None

    def train(self, input: TrainInput, is_cancelled: IsCancelled) -> Outcome:
        found = self._find(input.run, input.branch, input.step, input.inputs_sha256)
        if found is not None:
            return Outcome(found, True)
        # Loading may restart this process with other instructions (the engine's proof), before ranks copy them.
        self._library.get(input.base_model)
        with ExitStack() as failed:
            # Other ranks may wait in a collective that this rank has left.
            failed.callback(self.close)
            outcome = self._lead(input, is_cancelled)
            failed.pop_all()
            return outcome

    def _lead(self, work: TrainInput, is_cancelled: IsCancelled) -> Outcome:
        try:
            group = self._whole_group(is_cancelled)
            group.begin(work.model_dump_json(by_alias=True, exclude_defaults=True).encode(), is_cancelled)
            return super().train(work, is_cancelled)
        except RankLost as error:
            reason = str(error) if self.group is None else self.group.explain(error)
            raise TemperError(
                "TrainerFailed",
                f"step {work.step} of {work.run}: {reason}; nothing was committed, a retry takes new ranks",
            ) from error

    def _whole_group(self, is_cancelled: IsCancelled) -> RankGroup:
        if self.group is not None and not self.group.is_whole():
            self.close()
        if self.group is None:
            self.group = RankGroup(self._enter, self._settings)
            self.group.join(self._joined, is_cancelled)
        return self.group

    def _watch(self) -> None:
        if self.group is not None:
            self.group.watch()
