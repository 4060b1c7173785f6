/** Recorded prompts that a deployment is asked: first those of the checkpoint's own evaluation. */
import { shuffle } from '../../core/numbers/seeds.ts';
import { listSteps } from '../../store/records/runs/checkpoints.ts';
import { readEvalRollouts, readGroups } from '../../store/records/runs/run-reader.ts';
import type { AttemptRecord, CallRecord } from '../../store/records/groups/trajectories.ts';
import type { StepPlace } from '../../store/layout.ts';
import type { Store } from '../../store/store.ts';

export interface RecordedPrompt {
  /** The form that went over the wire. */
  readonly request: CallRecord['request'];
  /** The text that the run's chat template wrote. */
  readonly tokenIds: readonly number[];
}

export interface PromptChoice {
  readonly place: StepPlace;
  /** Those of the policy, where the step's attempts are its own. */
  readonly adapterSha256: string;
  readonly count: number;
  readonly seed: number;
}

/** Longer prompts are taken only if there are too few others. */
const SHORT_TOKENS = 2048;

/** Chosen by the seed: the same ones for the same store. */
export async function chooseRecordedPrompts(store: Store, choice: PromptChoice): Promise<RecordedPrompt[]> {
  const calls = await recordedCalls(store, choice.place);
  const own = calls.filter(({ adapterSha256 }) => adapterSha256 === choice.adapterSha256);
  const usable = (own.length > 0 ? own : calls).filter(isPlain);
  const distinct = [...new Map(usable.map((call) => [call.promptTokenIds.join(), call])).values()];
  const chosen = shuffle(distinct, choice.seed).toSorted((left, right) => effortOf(left) - effortOf(right));
  return chosen.slice(0, choice.count).map(({ request, promptTokenIds }) => ({ request, tokenIds: promptTokenIds }));
}

/** Those of the newest evaluation up to the step, of any before it on other branches, or of what was trained. */
async function recordedCalls(store: Store, { run, branch, step }: StepPlace): Promise<CallRecord[]> {
  const places = (await listSteps(store, run)).filter((place) => place.step <= step);
  const nearest = places.toSorted(
    (left, right) => Number(right.branch === branch) - Number(left.branch === branch) || right.step - left.step,
  );
  for (const place of nearest) {
    const calls = callsOf((await readEvalRollouts(store, place))?.attempts ?? []);
    if (calls.length > 0) return calls;
  }
  for (const place of nearest) {
    const groups = await readGroups(store, place);
    const calls = groups.flatMap(({ rollouts }) => callsOf(rollouts.attempts));
    if (calls.length > 0) return calls;
  }
  return [];
}

function callsOf(attempts: readonly AttemptRecord[]): CallRecord[] {
  return attempts.flatMap(({ calls }) => calls.filter(({ promptTokenIds }) => promptTokenIds.length > 0));
}

/** Without an enforced form, which would change what is likely. */
function isPlain({ request }: CallRecord): boolean {
  const { response_format: format, tool_choice: choice } = request;
  return (format === undefined || format === null) && (choice === undefined || choice === 'auto' || choice === 'none');
}

/** Tools last: a server may take them for another prompt than the run's template makes of them. */
function effortOf({ request, promptTokenIds }: CallRecord): number {
  return Number(request.tools !== undefined) * 2 + Number(promptTokenIds.length > SHORT_TOKENS);
}
