/**
 * The ledger of the hosted calls that one command makes outside of any run: each answer is stored before use, so a
 * command that was killed pays for none twice, and its budget counts what was paid before.
 */
import pLimit from 'p-limit';
import type { z } from 'zod';

import type { JudgeSpending } from '../../core/contract/contract.ts';
import { badConfig } from '../../core/contract/failures.ts';
import { hashOf } from '../../core/text/hashes.ts';
import { addSpendings, describeSpending } from '../../core/rules/judge-spending.ts';
import { hostedAnswerKey, hostedAnswersPrefix } from '../../store/layout.ts';
import { childNames, GROUPS_AT_ONCE } from '../../store/records/children.ts';
import { HostedAnswerFileSchema, publishStored, readStored } from '../../store/records/file-schemas.ts';
import type { Store } from '../../store/store.ts';
import { connectEngine, type EngineConnection } from '../connections/engine-connection.ts';
import { costOf, hostedAddress, readUsed, type HostedModel, type Price } from '../connections/providers.ts';
import { parseCompletion } from '../connections/completion.ts';

type HostedAnswerFile = z.output<typeof HostedAnswerFileSchema>;

/** A hosted model and its price, as a person names them. */
export interface PricedModel {
  readonly hosted: HostedModel;
  readonly price: Price | null;
}

export interface LedgerOptions {
  readonly store: Store;
  /** Folder of the ledger in the store: commands of the same work share their answers. */
  readonly work: string;
  /** No call is begun once so much is spent; null: no limit. */
  readonly maxUsd: number | null;
  /** Called with the sum after each answer that was paid for. */
  readonly onSpent?: (spent: JudgeSpending) => void;
}

type Charge = Pick<HostedAnswerFile, 'model' | 'promptTokens' | 'completionTokens' | 'usd'>;

export class HostedLedger {
  readonly #options: LedgerOptions;
  readonly #answers: Map<string, HostedAnswerFile>;
  #spent: JudgeSpending;
  readonly #connections = new Map<string, EngineConnection>();

  constructor(options: LedgerOptions, answers: Map<string, HostedAnswerFile>) {
    this.#options = options;
    this.#answers = answers;
    this.#spent = addSpendings([...answers.values()].map(spendingOf));
  }

  static async open(options: LedgerOptions): Promise<HostedLedger> {
    return new HostedLedger(options, await readAnswers(options.store, options.work));
  }

  /** All that was paid for this work so far, by earlier processes too. */
  get spent(): JudgeSpending {
    return this.#spent;
  }

  /**
   * A connection to the model: a request that was answered under this label before gets that answer, without a call.
   * Throws BadConfig where the budget is used up.
   */
  connect(model: PricedModel, label: string): EngineConnection {
    const connection = this.#connectTo(model.hosted);
    return {
      ...connection,
      post: async (body, options) => {
        const key = this.#keyOf(model, label, body);
        const known = this.#answers.get(key);
        if (known !== undefined) return { status: 200, retryAfter: null, text: known.text };
        this.checkBudget();
        const answer = await connection.post(body, options);
        const completion = answer.status === 200 ? parseCompletion(answer.text) : null;
        if (completion === null) return answer;
        const used = readUsed(completion['usage']);
        const usd = costOf(model.hosted, model.price, used);
        const { text } = await this.#keep(key, label, { ...used, model: model.hosted.name, usd }, answer.text);
        return { ...answer, text };
      },
      close: () => Promise.resolve(),
    };
  }

  /** Whether the request was answered before. */
  knows(model: PricedModel, label: string, body: string): boolean {
    return this.#answers.has(this.#keyOf(model, label, body));
  }

  /** Throws BadConfig if no further call may be begun. */
  checkBudget(): void {
    const { maxUsd } = this.#options;
    if (maxUsd === null) return;
    const { spent } = this;
    if (spent.usd !== null && spent.usd < maxUsd) return;
    const [rule, remedy] =
      spent.usd === null
        ? ['cannot be kept: an answer did not say how many tokens it used', 'leave it out, or choose another model']
        : ['is used up', 'run the same command with a higher --max-cost-usd to continue'];
    throw badConfig(`--max-cost-usd ${maxUsd} ${rule}: ${describeSpending(spent)} so far; ${remedy}`);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
  }

  async #keep(key: string, label: string, cost: Charge, text: string): Promise<HostedAnswerFile> {
    const { store, work, onSpent } = this.#options;
    const { model, promptTokens, completionTokens, usd } = cost;
    const file = { schema: 1, label, model, promptTokens, completionTokens, usd, text } as const;
    // A second writer gets the first one's answer.
    const kept = await publishStored(store, hostedAnswerKey(work, key), HostedAnswerFileSchema, file);
    if (!this.#answers.has(key)) this.#spent = addSpendings([this.#spent, spendingOf(kept)]);
    this.#answers.set(key, kept);
    onSpent?.(this.#spent);
    return kept;
  }

  #connectTo(hosted: HostedModel): EngineConnection {
    const connection = this.#connections.get(hosted.name) ?? connectEngine(hostedAddress(hosted));
    this.#connections.set(hosted.name, connection);
    return connection;
  }

  #keyOf({ hosted }: PricedModel, label: string, body: string): string {
    return hashOf({ label, model: hosted.name, body });
  }
}

function spendingOf({ promptTokens, completionTokens, usd }: HostedAnswerFile): JudgeSpending {
  return { calls: 1, cached: 0, promptTokens: promptTokens ?? 0, completionTokens: completionTokens ?? 0, usd };
}

async function readAnswers(store: Store, work: string): Promise<Map<string, HostedAnswerFile>> {
  const prefix = hostedAnswersPrefix(work);
  const limit = pLimit(GROUPS_AT_ONCE);
  const read = async (name: string): Promise<[string, HostedAnswerFile][]> => {
    const answer = await readStored(store, `${prefix}/${name}`, HostedAnswerFileSchema);
    return answer === null ? [] : [[name.replace(/\.json$/, ''), answer]];
  };
  const names = await childNames(store, prefix);
  return new Map((await Promise.all(names.map((name) => limit(() => read(name))))).flat());
}
