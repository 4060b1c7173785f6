/** Processor milliseconds of one model call on either side; the other side is another process. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { CALL_HEADER, DEADLINE_HEADER } from '../core/contract/wire-constants.ts';
import { defineAgent } from '../sdk/agent/define-agent.ts';
import { Attempts } from '../play/play-attempts.ts';
import { connectEngine, type EngineConnection } from '../play/connections/engine-connection.ts';
import { openStore } from '../store/bytes/open-store.ts';
import { startScript } from './python.ts';

export interface CallOptions {
  python: string;
  calls: number;
  rounds: number;
  /** Sampled in each answer. */
  tokens: number;
}

/** One number for each round. */
export interface CallCosts {
  clientMs: number[];
  serverMs: number[];
}

const AT_ONCE = 64;
const CALLS_PER_ATTEMPT = 4;
const KEY = 'bench';
const POLICY = { model: 'bench@1', adapterSha256: '0'.repeat(64) };
const DEADLINE_MS = 60_000;

/** Rounds alternate between the sides, after one of each that warms up. */
export async function measureCalls(options: CallOptions): Promise<CallCosts> {
  const folder = mkdtempSync(join(tmpdir(), 'temper-bench-call-'));
  const server = await startServer(options, join(folder, 'server.jsonl'));
  // The client is answered with what the server really says.
  const canned = await startCanned((await server.engine.post(askedFor(0, options.tokens), POST)).text);
  const costs: CallCosts = { clientMs: [], serverMs: [] };
  try {
    for (let round = 0; round <= options.rounds; round++) {
      const serverMs = await serverRound(server, round, options);
      const clientMs = await clientRound(canned.engine, join(folder, 'store'), round, options);
      if (round === 0) continue;
      costs.serverMs.push(serverMs);
      costs.clientMs.push(clientMs);
    }
  } finally {
    await Promise.all([server.close(), canned.close()]);
    rmSync(folder, { recursive: true });
  }
  return costs;
}

/** This process is the load; the server tells its own processor time. */
async function serverRound(server: Side, round: number, { calls, tokens }: CallOptions): Promise<number> {
  let next = round * calls;
  const end = next + calls;
  const before = await cpuSeconds(server.engine.url);
  const work = async (): Promise<void> => {
    while (next < end) {
      const { status, text } = await server.engine.post(askedFor(next++, tokens), POST);
      if (status !== 200) throw new Error(`the server answered ${status}: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return (((await cpuSeconds(server.engine.url)) - before) * 1000) / calls;
}

/** All that the SDK does for a call, and its share of an attempt of four: openai client, recorder, journal in a file. */
async function clientRound(engine: EngineConnection, store: string, round: number, options: CallOptions) {
  const attempts = Math.ceil(options.calls / CALLS_PER_ATTEMPT);
  const segments = await (await openStore(store)).openJournal(`runs/bench/journal/0.${round}/0`);
  const playing = new Attempts({
    agent: callingAgent(options.tokens),
    planned: Array.from({ length: attempts }, (_, attempt) => ({ attempt, scenarioIndex: 0, scenario: { id: 'a' } })),
    concurrency: AT_ONCE,
    engine,
    segments,
    policy: POLICY,
    mode: 'train',
    rollout: {
      temperature: 1,
      maxTokens: options.tokens,
      maxCallsPerAttempt: CALLS_PER_ATTEMPT,
      attemptTimeoutMs: DEADLINE_MS,
      callTimeoutMs: DEADLINE_MS,
      callRetryBudgetMs: DEADLINE_MS,
    },
    place: { seed: 1, branch: 0, step: round },
    attemptKey: (attempt) => `bench.0.${round}.0.${attempt}`,
    signal: new AbortController().signal,
    isFresh: () => true,
  });
  const before = process.cpuUsage();
  const played = await playing.play();
  const { user, system } = process.cpuUsage(before);
  const failed = played.find(({ failure }) => failure !== null);
  if (failed !== undefined) throw new Error(`an attempt of the bench failed: ${failed.failure?.message}`);
  return (user + system) / 1000 / (attempts * CALLS_PER_ATTEMPT);
}

function callingAgent(tokens: number) {
  return defineAgent({
    name: 'bench',
    scenarios: [],
    async rollout({ openai, model }) {
      for (let turn = 0; turn < CALLS_PER_ATTEMPT; turn++) {
        const messages = [{ role: 'user' as const, content: board(turn) }];
        await openai.chat.completions.create({ model, messages, max_tokens: tokens });
      }
      return 0;
    },
  });
}

interface Side {
  engine: EngineConnection;
  close(): Promise<void>;
}

async function startServer({ python, tokens }: CallOptions, log: string): Promise<Side> {
  const child = startScript(python, 'instant_server.py', [String(tokens), log]);
  const ended = once(child, 'exit');
  child.stderr?.resume();
  const printed = child.stdout === null ? [] : await Promise.race([once(child.stdout, 'data'), ended]);
  if (child.exitCode !== null) throw new Error('bench/instant_server.py did not start');
  const { port } = JSON.parse(String(printed[0])) as { port: number };
  return side(port, () => (child.kill('SIGKILL'), ended));
}

async function startCanned(body: string): Promise<Side> {
  const child = fork(fileURLToPath(new URL('canned-engine.ts', import.meta.url)));
  const ended = once(child, 'exit');
  child.send(body);
  const [port] = (await once(child, 'message')) as [number];
  return side(port, () => (child.kill('SIGKILL'), ended));
}

function side(port: number, end: () => Promise<unknown>): Side {
  const engine = connectEngine({ url: `http://127.0.0.1:${port}`, key: KEY });
  return {
    engine,
    async close() {
      await engine.close();
      await end();
    },
  };
}

const POST = {
  headers: { [CALL_HEADER]: `bench.0.1.0.1/${'0'.repeat(64)}/0`, [DEADLINE_HEADER]: String(DEADLINE_MS) },
  deadlineMs: DEADLINE_MS,
  signals: [],
};

/** Request as the recorder sends it. */
function askedFor(call: number, tokens: number): string {
  const messages = [{ role: 'user', content: board(call) }];
  const asked = { temperature: 1, max_tokens: tokens, messages, model: POLICY.model };
  return JSON.stringify({ seed: call, ...asked, logprobs: true, return_token_ids: true });
}

/** Another conversation for (almost) every call: no remembered prompt makes it cheaper than a real one. */
function board(call: number): string {
  const stones = (call % 3 ** 9).toString(3).padStart(9, '0');
  return Array.from(stones, (stone, cell) => (stone === '0' ? String(cell + 1) : stone === '1' ? 'x' : 'o')).join('');
}

async function cpuSeconds(url: string): Promise<number> {
  const answer = (await (await fetch(`${url}/cpu`)).json()) as { cpu_s: number };
  return answer.cpu_s;
}
