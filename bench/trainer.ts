/** `npm run bench -- trainer`: a step of the trainer beside others, the same attempts in the same minutes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { openTools } from '../test/run/tools.ts';
import { countFlag, readNames, showSpread, spread, type Bench, type Flags, type Spread } from './bench.ts';
import { OWN_ENVIRONMENT, readModel, startScript } from './python.ts';
import { openTrl } from './trl/environment.ts';

/** See `main` of trainer_peers.py. */
interface Took {
  seconds: number;
  peakBytes: number;
  loss: number;
}

interface Peer {
  readonly name: string;
  step(workload: string, seed: number): Promise<Took>;
  end(): void;
}

/** The trainer as it is by default. */
const OWN = 'tree';
const HERE = ['rows', 'plain'];
/** With activations kept, which is faster, and as it is by default. */
const TRL = ['trl', 'trl-checkpointing'];
const WORKLOADS = ['short', 'shared512', 'shared2400', 'turns6'] as const;
/** Other orders of addition give other last digits of a loss. */
const SAME_LOSS = 1e-3;

export const trainer: Bench = {
  name: 'trainer',
  summary: 'seconds of a step of TRL, of separate rows and of a plain PyTorch loop over those of shared prefixes',
  flags: {
    model: 'pocket',
    groups: '8',
    rounds: '5',
    threads: '2',
    peers: 'trl,trl-checkpointing,rows,plain',
    workloads: WORKLOADS.join(','),
  },
  run,
};

async function run(flags: Flags): Promise<object> {
  const [groups, rounds] = [countFlag(flags, 'groups'), countFlag(flags, 'rounds')];
  const workloads = readNames('workloads', flags.workloads!, WORKLOADS);
  const others = readNames('peers', flags.peers!, [...HERE, ...TRL]);
  const folder = mkdtempSync(join(tmpdir(), 'temper-bench-'));
  const peers: Peer[] = [];
  try {
    const { python } = await openTools();
    const model = await readModel(python, flags.model!, folder);
    const args = ['--model', model, '--groups', `${groups}`, '--threads', flags.threads!];
    const trl = others.some((name) => TRL.includes(name)) ? await openTrl(python) : {};
    for (const name of [OWN, ...others]) peers.push(startPeer(python, name, args, TRL.includes(name) ? trl : null));
    console.log(`${flags.model}, ${groups} groups of 8; median (min–max) of ${rounds} rounds`);
    const ratios: Record<string, Record<string, Spread>> = {};
    const peakMemory: Record<string, Record<string, number>> = {};
    for (const name of workloads) {
      const took = await measure(peers, name, rounds);
      print(name, took);
      ratios[name] = ratiosOf(took);
      peakMemory[name] = Object.fromEntries([...took].map(([peer, rows]) => [peer, peakOf(rows)]));
    }
    return { ...flags, ratios, peakMemory };
  } finally {
    for (const peer of peers) peer.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Measured = ReadonlyMap<string, readonly Took[]>;

/** Peers take turns, so that a slow minute meets all of them. The first round warms up. */
async function measure(peers: readonly Peer[], name: string, rounds: number): Promise<Measured> {
  const found = new Map<string, Took[]>(peers.map((peer) => [peer.name, []]));
  for (let round = 0; round <= rounds; round++) {
    const losses: number[] = [];
    for (const peer of round % 2 === 0 ? peers : peers.toReversed()) {
      const took = await peer.step(name, round);
      losses.push(took.loss);
      if (round > 0) found.get(peer.name)!.push(took);
    }
    const apart = Math.max(...losses) - Math.min(...losses);
    if (!(apart <= SAME_LOSS * Math.max(1, ...losses.map(Math.abs))))
      throw new Error(`all peers must train the same attempts, but their losses on ${name} are ${losses.join(', ')}`);
  }
  return found;
}

function ratiosOf(took: Measured): Record<string, Spread> {
  const own = took.get(OWN)!;
  const others = [...took].filter(([peer]) => peer !== OWN);
  return Object.fromEntries(
    others.map(([peer, rows]) => [
      peer,
      spread(rows.map(({ seconds }, round) => seconds / (own[round]?.seconds ?? Number.NaN))),
    ]),
  );
}

function print(name: string, took: Measured): void {
  const ratios = ratiosOf(took);
  for (const [peer, rows] of took) {
    const seconds = rows.map((row) => row.seconds);
    const { median, min, max } = ratios[peer] ?? spread([1]);
    const memory = `${(peakOf(rows) / 2 ** 20).toFixed(0)} MiB at most`;
    const ratio = `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)}) times the trainer's`;
    console.log(`  ${name.padEnd(10)} ${peer.padEnd(17)} ${showSpread(seconds, 3)} s   ${ratio}   ${memory}`);
  }
}

function peakOf(rows: readonly Took[]): number {
  return Math.max(...rows.map(({ peakBytes }) => peakBytes));
}

/** `trl`: what its peers need around them; null for one of our own. */
function startPeer(python: string, name: string, args: readonly string[], trl: Record<string, string> | null): Peer {
  const script = trl === null ? 'trainer_peers.py' : 'trl/peer.py';
  const env = { ...OWN_ENVIRONMENT, ...trl };
  const child = startScript(python, script, ['--peer', name, ...args], { stdin: 'pipe', env });
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  let complaints = '';
  child.stderr!.on('data', (text: Buffer) => (complaints = (complaints + String(text)).slice(-3000)));
  return {
    name,
    async step(workload, seed) {
      child.stdin!.write(`${JSON.stringify([workload, seed])}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`the peer ${name} ended:\n${complaints}`);
      return JSON.parse(value) as Took;
    },
    end: () => void child.stdin!.end(),
  };
}
