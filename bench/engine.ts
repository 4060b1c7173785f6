/** `npm run bench -- engine`: the embedded engine beside others, the same requests in the same minutes. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { badConfig } from '../core/contract/failures.ts';
import { openTools } from '../test/run/tools.ts';
import { defineConfig } from '../workers/config/config.ts';
import { mergeEngineConfig } from '../core/rules/engine-rules.ts';
import { cacheFolder } from '../workers/project/folders.ts';
import { vllmPythonOf } from '../workers/install/vllm-environment.ts';
import {
  countFlag,
  median,
  quantile,
  readCounts,
  readNames,
  showSpread,
  spread,
  type Bench,
  type Flags,
  type Spread,
} from './bench.ts';
import { planWorkload, WORKLOADS, type Workload } from './engine-workloads.ts';
import { OWN_ENVIRONMENT, readModel, runScript, startScript } from './python.ts';

/** Times by conversation: see `Played` of engine_peers.py. */
interface Played {
  tokens: number[];
  first: number[];
  last: number[];
  peakBytes: number;
}

interface Peer {
  readonly name: string;
  play(workload: Workload): Promise<Played>;
  end(): void;
}

const EMBEDDED = 'embedded';
const PEERS = [EMBEDDED, 'generate', 'vllm'] as const;

export const engine: Bench = {
  name: 'engine',
  summary: 'tokens per second of the embedded engine over those of generate() and vLLM, by workload',
  flags: {
    model: 'pocket',
    requests: '64',
    rounds: '3',
    threads: '2',
    adapter: 'no',
    policies: '1',
    dtype: 'float32',
    peers: 'embedded,generate',
    workloads: WORKLOADS.join(','),
  },
  run,
};

async function run(flags: Flags): Promise<object> {
  const [requests, rounds] = [readCounts('requests', flags.requests!), countFlag(flags, 'rounds')];
  const names = readNames('workloads', flags.workloads!, WORKLOADS);
  const peerNames = readNames('peers', flags.peers!, PEERS);
  const own = readOwnFlags(flags, peerNames);
  const folder = mkdtempSync(join(tmpdir(), 'temper-bench-'));
  const peers: Peer[] = [];
  try {
    const { python } = await openTools();
    const model = await readModel(python, flags.model!, folder);
    const adapter = flags.adapter === 'yes' ? ['--adapter', await makeAdapter(python, model, folder)] : [];
    for (const name of peerNames) {
      const args = ['--model', model, ...adapter];
      const child =
        name === 'vllm'
          ? await startVllm(args, flags.threads!)
          : startOwn(python, name, [...args, ...own], flags.threads!);
      peers.push(asPeer(name, child));
    }
    const speeds: Record<string, Record<string, number[]>> = {};
    for (const count of requests) {
      console.log(`${flags.model}, ${count} at once, adapter: ${flags.adapter}; median (min–max) of ${rounds} rounds`);
      for (const name of names)
        speeds[requests.length > 1 ? `${name} of ${count}` : name] = await measure(peers, name, count, rounds);
    }
    return { ...flags, ratios: ratiosOf(speeds) };
  } finally {
    for (const peer of peers) peer.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Tokens per second, by peer and round. The first round warms up. */
async function measure(peers: readonly Peer[], name: string, requests: number, rounds: number) {
  const speeds: Record<string, number[]> = Object.fromEntries(peers.map((peer) => [peer.name, []]));
  const last: Record<string, Played> = {};
  for (let round = 0; round <= rounds; round++) {
    for (const peer of peers) {
      const workload = planWorkload(name, requests, round);
      const played = await peer.play(workload);
      if (round > 0) speeds[peer.name]!.push(speedOf(played, workload.counted));
      last[peer.name] = played;
    }
  }
  for (const { name: peer } of peers) {
    const { first, peakBytes } = last[peer]!;
    const waits = [median(first), quantile(first, 0.99)].map((seconds) => seconds.toFixed(2)).join(' / ');
    const memory = `${(peakBytes / 2 ** 30).toFixed(2)} GiB at most`;
    console.log(
      `  ${name.padEnd(13)} ${peer.padEnd(9)} ${showSpread(speeds[peer]!, 0)} tokens/s   first token p50 / p99 ${waits} s   ${memory}`,
    );
  }
  return speeds;
}

function speedOf({ tokens, last }: Played, counted: number): number {
  const sum = tokens.slice(0, counted).reduce((total, count) => total + count, 0);
  return sum / Math.max(...last.slice(0, counted));
}

/** The embedded engine's tokens per second over each other's, round by round. */
function ratiosOf(speeds: Record<string, Record<string, number[]>>): Record<string, Record<string, Spread>> {
  return Object.fromEntries(
    Object.entries(speeds).map(([workload, { [EMBEDDED]: ours = [], ...others }]) => {
      const ratios = Object.entries(others).map(([peer, theirs]) => {
        return [peer, spread(theirs.map((speed, round) => (ours[round] ?? Number.NaN) / speed))] as const;
      });
      return [workload, Object.fromEntries([...ratios, ['tokensPerS', spread(ours)]])];
    }),
  );
}

/** Each is a process that reads workloads and writes what they took. */
function startOwn(python: string, name: string, args: readonly string[], threads: string): ChildProcess {
  const options = { stdin: 'pipe', env: OWN_ENVIRONMENT } as const;
  return startScript(python, 'engine_peers.py', ['--peer', name, '--threads', threads, ...args], options);
}

async function startVllm(args: readonly string[], threads: string): Promise<ChildProcess> {
  const config = mergeEngineConfig(defineConfig().engine, { kind: 'vllm' });
  const python = await vllmPythonOf(config, { env: process.env, cache: cacheFolder(process.env) });
  const own = {
    OMP_NUM_THREADS: threads,
    VLLM_CPU_OMP_THREADS_BIND: 'nobind',
    VLLM_NO_USAGE_STATS: '1',
    OMP_WAIT_POLICY: 'PASSIVE',
  };
  return startScript(python!, 'engine_vllm.py', args, { stdin: 'pipe', env: own });
}

function asPeer(name: string, child: ChildProcess): Peer {
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  let complaints = '';
  child.stderr!.on('data', (text: Buffer) => (complaints = (complaints + String(text)).slice(-3000)));
  return {
    name,
    async play({ conversations }) {
      child.stdin!.write(`${JSON.stringify(conversations)}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`the peer ${name} ended:\n${complaints}`);
      return JSON.parse(value) as Played;
    },
    // It ends what it started, too.
    end: () => void child.stdin!.end(),
  };
}

async function makeAdapter(python: string, model: string, folder: string): Promise<string> {
  const adapter = mkdtempSync(join(folder, 'adapter-'));
  await runScript(python, 'make_adapter.py', [model, adapter]);
  return adapter;
}

/** Flags for the peers in this repository: weight type, and number of policies of the embedded engine's requests. */
function readOwnFlags(flags: Flags, peers: readonly string[]): string[] {
  const policies = countFlag(flags, 'policies');
  const [dtype] = readNames('dtype', flags.dtype!, ['float32', 'bfloat16']);
  if (policies > 1 && (peers.join() !== EMBEDDED || flags.adapter !== 'yes'))
    throw badConfig(`--policies ${policies} needs --adapter yes and --peers ${EMBEDDED}: others play one policy`);
  if (dtype !== 'float32' && peers.includes('vllm'))
    throw badConfig(`--dtype ${dtype} needs --peers without vllm, which plays float32 here`);
  return ['--policies', `${policies}`, '--dtype', dtype!];
}
