/** Runs whose groups were played and await their rewards, as workers leave them behind. */
import type { ExternalConfig } from '../../../core/contract/contract.ts';
import { defaultRunConfig } from '../../../core/rules/run-defaults.ts';
import { encodeJson } from '../../../store/bytes/json.ts';
import { groupTimesKey, rolloutsKey } from '../../../store/layout.ts';
import { publishRun } from '../../../store/records/runs/publish-run.ts';
import type { Store } from '../../../store/store.ts';
import { attemptOf, callOf, FAILED, user } from '../../store/records/made-attempt.ts';
import { encodeRollouts, type AttemptRecord, type ChatMessage } from '../../../store/records/groups/trajectories.ts';

const SHA = (digit: string) => digit.repeat(64);

export interface AwaitedOptions {
  readonly run?: string;
  readonly external?: ExternalConfig;
  /** Messages before the answer. */
  readonly messages?: readonly ChatMessage[];
  /** Another one for each attempt by default. */
  readonly answer?: string;
  readonly scenarioId?: string;
  /** The agent's. */
  readonly metrics?: AttemptRecord['metrics'];
  /** Last answer of each attempt. */
  readonly answers?: readonly string[];
  /** End of the first group, the second ends a second later. */
  readonly playedAt?: number;
}

/** Step 1 of `demo`: two groups of four attempts; the last one of each has failed. */
export async function awaitRewards(store: Store, options: AwaitedOptions = {}): Promise<void> {
  const { run = 'demo', external = {} } = options;
  const settings = { run, agent: 'toy', baseModel: 'pocket', steps: 1, groupsPerStep: 2, groupSize: 4 };
  const config = { ...defaultRunConfig(settings), judge: external.review ? 'review' : 'external', external };
  await publishRun(store, { config, agentCodeSha256: SHA('a') });
  for (const group of [0, 1]) await playGroup(store, group, options);
}

async function playGroup(store: Store, group: number, { run = 'demo', ...options }: AwaitedOptions): Promise<void> {
  const place = { run, branch: 0, step: 1, group };
  const attempts = Array.from({ length: 4 }, (_, attempt) => record(attempt, options));
  const { scenarioId = `s${group}` } = options;
  const { run: _, ...where } = place;
  const header = { schema: 1, inputsSha256: SHA('b'), ...where, scenario: group, scenarioId, attempts: 4 } as const;
  await store.publish(
    rolloutsKey(place),
    await encodeRollouts({ header: { ...header, adapterSha256: SHA('c') }, attempts }),
  );
  const { playedAt } = options;
  if (playedAt !== undefined)
    await store.replace(groupTimesKey(place), encodeJson({ endedAt: playedAt + group * 1000 }));
}

const QUESTION = user('Where is my order?');

function record(attempt: number, options: AwaitedOptions): AttemptRecord {
  const { metrics = {}, messages = [QUESTION], answer = options.answers?.[attempt] ?? `answer ${attempt}` } = options;
  const call = callOf([...messages], answer, { adapterSha256: SHA('c') });
  return attemptOf(attempt, [call], attempt === 3 ? FAILED : { reward: null, metrics });
}
