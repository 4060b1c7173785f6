/** Reads and writes of `temper review`, apart from HTTP: attempts of the project's store, and ledgers of their rewards. */
import { parseTrainedAttemptId, type AttemptPlace } from '../../core/names/attempt-id.ts';
import type { ExternalConfig } from '../../core/contract/contract.ts';
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import { HttpRefusal } from '../../play/transports/http-server.ts';
import { rolloutsKey, runKey } from '../../store/layout.ts';
import { RunFileSchema, readStored } from '../../store/records/file-schemas.ts';
import {
  openGiver,
  type GivenComparison,
  type Giver,
  type GivingAnswer,
  type RewardRefusal,
} from '../../store/records/rewards/give-reward.ts';
import type { GivenReward } from '../../store/records/rewards/given-problems.ts';
import { lastRewards, readGiven, type GivenRow, type RewardRow } from '../../store/records/rewards/given-rewards.ts';
import { readRollouts } from '../../store/records/groups/group-files.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import type { Store } from '../../store/store.ts';
import { RunQuestions } from './questions/questions.ts';

/** One attempt as its reviewer sees it. */
export interface ShownAttempt {
  readonly scenarioId: string;
  readonly record: AttemptRecord;
  /** The reward that counts so far; null if there is none. */
  readonly given: RewardRow | null;
  /** Why it takes no reward any more; null if it does. */
  readonly refusal: string | null;
}

const STATUS: Readonly<Record<RewardRefusal, number>> = {
  'bad-attempt': 404,
  'unknown-attempt': 404,
  'failed-attempt': 409,
  'abandoned-branch': 409,
  'bad-value': 422,
  decided: 409,
  'key-reused': 409,
  'too-many-changes': 409,
};

/** Every refusal is an HttpRefusal. Opened for each request, because runs come, go on and are deleted. */
export class RewardDesk {
  readonly store: Store;
  readonly questions: RunQuestions;
  readonly #wake: (run: string) => void;

  /** `wake` lets a run look at its ledgers; it must not fail. */
  constructor(store: Store, wake: (run: string) => void) {
    this.store = store;
    this.questions = new RunQuestions(store);
    this.#wake = wake;
  }

  async readAttempt(run: string, attempt: string): Promise<ShownAttempt> {
    const giver = await this.#open(run);
    const id = parseTrainedAttemptId(attempt);
    const found = id && (await this.#find(run, id));
    // The reward that an attempt has would be the same again, which is never refused.
    const refused = await giver.check({ attempt, reward: found?.given?.reward === 0 ? 1 : 0 });
    if (found === null) throw toHttp(refused ?? { reason: 'unknown-attempt', message: `no attempt ${attempt}` });
    return { ...found, refusal: refused?.message ?? null };
  }

  async #find(run: string, { attempt, ...group }: AttemptPlace): Promise<Omit<ShownAttempt, 'refusal'> | null> {
    const place = { run, ...group };
    const played = await readRollouts(this.store, rolloutsKey(place));
    const record = played?.rollouts.attempts.find((one) => one.attempt === attempt);
    if (played === null || record === undefined) return null;
    const given = lastRewards(await readGiven(this.store, place)).get(attempt) ?? null;
    return { scenarioId: played.rollouts.header.scenarioId ?? '', record, given };
  }

  async give(run: string, given: GivenReward): Promise<'given' | 'same'> {
    return this.#take(run, await (await this.#open(run)).give(given));
  }

  async compare(run: string, given: GivenComparison): Promise<'given' | 'same'> {
    return this.#take(run, await (await this.#open(run)).compare(given));
  }

  #take(run: string, answer: GivingAnswer<GivenRow>): 'given' | 'same' {
    if (answer.outcome === 'refused') throw toHttp(answer);
    // Repeated, too: an earlier signal may have been lost.
    if (answer.missing === 0 && !answer.isDecided) this.#wake(run);
    return answer.outcome;
  }

  /** Rules by which the run takes rewards. */
  async readRules(run: string): Promise<ExternalConfig> {
    await this.requireRun(run);
    const { external } = (await readStored(this.store, runKey(run), RunFileSchema))!.config;
    if (external !== undefined) return external;
    throw new HttpRefusal(409, `the run ${run} rewards itself and waits for no review`, 'not_awaited');
  }

  async #open(run: string): Promise<Giver> {
    await this.requireRun(run);
    return openGiver(this.store, run);
  }

  /** In words of its own: who has a link is told no path, and no other run. */
  async requireRun(run: string): Promise<void> {
    if (NAME_PATTERN.test(run) && (await this.store.read(runKey(run))) !== null) return;
    throw new HttpRefusal(
      404,
      `no run ${JSON.stringify(run.slice(0, 80))} in this store; see temper runs`,
      'unknown_run',
    );
  }
}

function toHttp({ reason, message }: { reason: RewardRefusal; message: string }): HttpRefusal {
  return new HttpRefusal(STATUS[reason], message, reason.replaceAll('-', '_'));
}
