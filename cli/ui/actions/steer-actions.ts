/** Actions that tell a running run one thing: pause, resume, stop, set, rollback. */
import type { RunState } from '../../../core/contract.ts';
import { plural } from '../../../core/format.ts';
import { applyChanges, findSettingsProblem, settingOf, type Setting } from '../../../core/settings.ts';
import { readAllChanges, readBranches } from '../../../store/records/lineage.ts';
import { isEnded } from '../../../store/records/run-reader.ts';
import { UsageError } from '../../command-line/errors.ts';
import { parseSettings } from '../../steer/parse-settings.ts';
import { describeRollback, rollBackRun } from '../../steer/roll-back-run.ts';
import { pauseRun, resumeRun, setRun, stopRun } from '../../steer/tell-run.ts';
import type { PlanAction } from './planned-action.ts';
import { reasonOf, requireActed, requireLive, requireStep, settingTexts, type ActedRun } from './read-request.ts';
import { optionWords, shellText } from './shell-text.ts';

const HELP = { prefix: '', help: 'docs/ui-api.md' };

export const planPause: PlanAction = async (request, place) => {
  const acted = await requireLive(place.store, request);
  const { run } = acted;
  const reason = reasonOf(request);
  return {
    says: `${finishing(acted)} Then ${run} pauses until you resume it. Nothing is lost.`,
    command: shellText(['temper', 'pause', run, ...optionWords('reason', reason)]),
    perform: async () => ({ says: await pauseRun(place, run, reason, request.requestId) }),
  };
};

export const planResume: PlanAction = async (request, place) => {
  const { run, state } = await requireLive(place.store, request);
  const next = state === null ? '' : ` with step ${state.step + 1} of ${state.steps}`;
  return {
    says: `${run} continues${next}.`,
    command: shellText(['temper', 'resume', run]),
    perform: async () => ({ says: await resumeRun(place, run, request.requestId) }),
  };
};

export const planStop: PlanAction = async (request, place) => {
  const acted = await requireLive(place.store, request);
  const { run } = acted;
  const reason = reasonOf(request);
  return {
    says: `${finishing(acted)} Then ${run} ends and keeps its result. You can continue it later with a rollback, or fork it.`,
    command: shellText(['temper', 'stop', run, ...optionWords('reason', reason)]),
    perform: async () => ({ says: await stopRun(place, run, reason, request.requestId) }),
  };
};

export const planSet: PlanAction = async (request, place) => {
  const { run, config, state } = await requireLive(place.store, request);
  const reason = reasonOf(request);
  const texts = settingTexts(request);
  const settings = parseSettings(texts, HELP);
  const now = applyChanges(config, (await readAllChanges(place.store, run)).changes);
  const complaint = findSettingsProblem(now, state?.step ?? 0, settings);
  if (complaint !== null) throw new UsageError(complaint);
  const changes = Object.entries(settings).map(
    ([name, to]) => `${name} from ${settingOf(now, name as Setting) ?? 'none'} to ${to}`,
  );
  return {
    says: `${run} gets ${changes.join(', ')}, from its next step on. The step in progress finishes as planned.`,
    command: shellText(['temper', 'set', run, ...texts, ...optionWords('reason', reason)]),
    perform: async () => ({ says: (await setRun(place, run, texts, reason, request.requestId)).join('\n') }),
  };
};

export const planRollback: PlanAction = async (request, place) => {
  const { run, state } = await requireActed(place.store, request);
  const step = requireStep(request);
  const { requestId } = request;
  const reason = reasonOf(request);
  const texts = settingTexts(request);
  const settings = texts.length === 0 ? null : parseSettings(texts, HELP);
  if (state === null) throw new UsageError(`${run} has no step to go back to yet; wait for its first step`);
  if (step > state.step)
    throw new UsageError(`step must be at most ${state.step}, the last finished step of ${run}, got ${step}`);
  const branches = await readBranches(place.store, run);
  const next = Math.max(0, ...branches.map(({ branch }) => branch)) + 1;
  const set = texts.flatMap((text) => ['--set', text]);
  return {
    says: describePlannedRollback(run, { ...state, steps: settings?.steps ?? state.steps }, step, next),
    command: shellText(['temper', 'rollback', run, '--step', String(step), ...set, ...optionWords('reason', reason)]),
    perform: async () => {
      const done = await rollBackRun(place.store, place, { run, step, settings, reason, requestId });
      return { says: describeRollback(run, done) };
    },
  };
};

function describePlannedRollback(run: string, state: RunState, step: number, next: number): string {
  const left = state.step - step;
  const kept =
    left === 0
      ? ''
      : ` ${left === 1 ? `Step ${state.step} stays` : `Steps ${step + 1} to ${state.step} stay`} readable on branch ${state.branch}.`;
  const begins = isEnded(state)
    ? `${run} has ended (${state.state}) and is started again`
    : `${run} drops the step in progress`;
  return `${begins}: it goes back to step ${step} and trains ${plural(state.steps - step, 'step')} on branch ${next}, with other seeds.${kept} Nothing is deleted.`;
}

function finishing({ run, state }: ActedRun): string {
  if (state === null) return `${run} has not begun its first step.`;
  return `${run} has finished step ${state.step} of ${state.steps} and completes the step in progress.`;
}
