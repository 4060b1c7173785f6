/** Tries scenarios: each attempt is journaled, and its outcome is stored once. */
import pLimit from 'p-limit';
import { hashOf } from '../../core/text/hashes.ts';
import type { Agent } from '../../play/agent.ts';
import { connectEngine, type EngineConnection } from '../../play/connections/engine-connection.ts';
import { askStructured } from '../../play/hosted/ask-structured.ts';
import { conversationOf } from '../../store/records/judging/conversation.ts';
import { Attempts } from '../../play/play-attempts.ts';
import { OutageClock } from '../../play/connections/clock.ts';
import { triedJournalPrefix, triedKey } from '../../store/layout.ts';
import { decodeJson, encodeJson } from '../../store/bytes/json.ts';
import type { AttemptRecord } from '../../store/records/groups/trajectories.ts';
import { createRewrite, type Player } from '../players/players.ts';
import type { MakePlan, MakeWorld, MadeScenario, ScenarioRow } from './make-plan.ts';
import { createTriedAgent } from './tried-agent.ts';
import { verdictQuestion, type SolvedVerdict } from './verdict.ts';

const TELL_EVERY_MS = 2000;

/** In the order of `scenarios`. All attempts that have begun end before an error is thrown: they are paid for. */
export async function tryScenarios(
  scenarios: readonly ScenarioRow[],
  plan: MakePlan,
  world: MakeWorld,
): Promise<MadeScenario[]> {
  if (plan.attempts === 0) return scenarios.map((row) => ({ ...row, solvedRate: null, explanation: null }));
  const trial = new Trial(plan, world, scenarios.length * plan.attempts);
  const limit = pLimit(world.concurrency);
  const timer = setInterval(() => trial.tellProgress(), TELL_EVERY_MS);
  try {
    const tried = scenarios.map((row) =>
      Promise.all(Array.from({ length: plan.attempts }, (_, number) => limit(() => trial.tryOnce(row, number)))),
    );
    await Promise.allSettled(tried);
    // Others have been paid for since the first failure: a budget's message counts them.
    if (trial.hasFailed) world.ledger.checkBudget();
    return (await Promise.all(tried)).map((verdicts, index) => ({ ...scenarios[index]!, ...summarise(verdicts) }));
  } finally {
    clearInterval(timer);
    await trial.close();
  }
}

function summarise(verdicts: readonly SolvedVerdict[]): Pick<MadeScenario, 'solvedRate' | 'explanation'> {
  const failed = verdicts.filter(({ solved }) => !solved);
  return { solvedRate: 1 - failed.length / verdicts.length, explanation: failed.at(-1)?.explanation ?? null };
}

class Trial {
  readonly #plan: MakePlan;
  readonly #world: MakeWorld;
  readonly #agent: Agent;
  readonly #outage = new OutageClock();
  /** Engine of the local stack; null for a hosted player. */
  readonly #engine: EngineConnection | null;
  readonly #of: number;
  readonly #playing = new Set<Attempts>();
  #done = 0;
  #told = '';
  #failure: { readonly error: unknown } | null = null;

  constructor(plan: MakePlan, world: MakeWorld, of: number) {
    this.#plan = plan;
    this.#world = world;
    this.#of = of;
    this.#agent = createTriedAgent({ ...plan, folder: world.folder });
    this.#engine = world.engine === null ? null : connectEngine(world.engine);
  }

  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  async close(): Promise<void> {
    await this.#engine?.close();
  }

  tellProgress(): void {
    const waits = [...this.#playing].map((playing) => playing.progress().waiting?.reason ?? null);
    const reason = this.#outage.reason ?? waits.find((each) => each !== null) ?? null;
    const waiting = reason === null ? '' : `, waiting for the model: ${reason}`;
    const line = `tried ${this.#done} of ${this.#of} attempts${waiting}`;
    if (line !== this.#told) this.#world.tell(line);
    this.#told = line;
  }

  async tryOnce(row: ScenarioRow, number: number): Promise<SolvedVerdict> {
    // Nothing new is begun after a failure.
    if (this.#failure !== null) throw this.#failure.error;
    try {
      const verdict = await this.#find(row, number);
      this.#done += 1;
      return verdict;
    } catch (error) {
      this.#failure ??= { error };
      throw this.#failure.error;
    }
  }

  async #find(row: ScenarioRow, number: number): Promise<SolvedVerdict> {
    const { store, work } = this.#world;
    const { model, tryWith, maxTurns } = this.#plan;
    const players = { by: tryWith.name, adapter: tryWith.adapterSha256, judge: model.hosted.name, maxTurns };
    const attempt = `${row.id}-${hashOf(players).slice(0, 8)}.${number}`;
    const key = triedKey(work, attempt);
    const known = await store.read(key);
    if (known !== null) return decodeJson(known, key) as SolvedVerdict;
    const verdict = await this.#judge(row, attempt, await this.#play(row, number, attempt));
    const { bytes } = await store.publish(key, encodeJson({ schema: 1, ...verdict }));
    await store.removeFolder(triedJournalPrefix(work, attempt));
    return decodeJson(bytes, key) as SolvedVerdict;
  }

  async #play(row: ScenarioRow, number: number, attempt: string): Promise<AttemptRecord> {
    const { tryWith } = this.#plan;
    const { store, work, signal } = this.#world;
    const { hosted, model, adapterSha256, rollout, place } = tryWith;
    const playing = new Attempts({
      agent: this.#agent,
      planned: [{ attempt: number, scenarioIndex: Number.parseInt(row.id.slice(0, 8), 16), scenario: row }],
      concurrency: 1,
      engine: this.#connect(tryWith, `attempt ${attempt}`),
      segments: await store.openJournal(triedJournalPrefix(work, attempt)),
      policy: { model, adapterSha256 },
      mode: hosted === null ? 'eval' : 'text',
      rollout,
      place,
      attemptKey: () => attempt,
      signal,
      isFresh: () => true,
      ...(hosted && { rewrite: createRewrite(hosted, { temperature: null, maxTokens: null }) }),
    });
    this.#playing.add(playing);
    const [record] = await playing.play().finally(() => this.#playing.delete(playing));
    const order = playing.callOrders()[number] ?? [];
    return { ...record!, calls: order.map((index) => record!.calls[index]!) };
  }

  #connect({ hosted, price }: Player, label: string): EngineConnection {
    return hosted === null ? this.#engine! : this.#world.ledger.connect({ hosted, price }, label);
  }

  async #judge({ task }: ScenarioRow, attempt: string, record: AttemptRecord): Promise<SolvedVerdict> {
    if (record.failure !== null) return { solved: false, explanation: record.failure.message };
    const { model, origin } = this.#plan;
    const { messages } = conversationOf(record);
    const question = verdictQuestion({ origin, task, messages, label: `verdict ${attempt}` });
    return askStructured(question, { ...this.#world, model, outage: this.#outage });
  }
}
