/** Clients of `temper serve` that ask without a pause, and count what they were answered. */
export interface LoadOptions {
  readonly baseUrl: string;
  readonly key: string;
  readonly model: string;
  /** How many ask at the same time. */
  readonly clients: number;
}

export interface LoadTally {
  answered: number;
  /** Everything that is no complete answer. */
  readonly failures: string[];
  /** Answers by the checkpoint that the header names. */
  readonly byPolicy: Map<string, number>;
  readonly ids: Set<string>;
}

export interface Load {
  readonly tally: LoadTally;
  /** No further requests; resolves once the last ones are answered. */
  readonly stop: () => Promise<void>;
}

/** Ends by itself at the first failure. */
export function startLoad(options: LoadOptions): Load {
  const tally: LoadTally = { answered: 0, failures: [], byPolicy: new Map(), ids: new Set() };
  const load = { asked: 0, isOver: false };
  const client = async (): Promise<void> => {
    while (!load.isOver && tally.failures.length === 0) await ask(options, tally, load.asked++);
  };
  const clients = Promise.all(Array.from({ length: options.clients }, client));
  return {
    tally,
    async stop() {
      load.isOver = true;
      await clients;
    },
  };
}

/** A board of tic-tac-toe; every other answer is streamed. */
async function ask({ baseUrl, key, model }: LoadOptions, tally: LoadTally, number: number): Promise<void> {
  const stream = number % 2 === 1;
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: '1x34o6789' }], stream });
  try {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(`${baseUrl}/chat/completions`, { method: 'POST', headers, body });
    const text = await response.text();
    const policy = response.headers.get('x-temper-policy');
    const named = /"model":"([^"]+)"/.exec(text)?.[1];
    const isWhole = stream ? text.endsWith('data: [DONE]\n\n') : text.includes('"finish_reason"');
    if (response.status !== 200 || !isWhole || policy === null || named !== policy)
      throw new Error(`${response.status}, ${policy} in the header, ${text.slice(0, 300)}`);
    tally.ids.add(/"id":"([^"]+)"/.exec(text)![1]!);
    tally.answered += 1;
    tally.byPolicy.set(policy, (tally.byPolicy.get(policy) ?? 0) + 1);
  } catch (error) {
    tally.failures.push(String(error));
  }
}
