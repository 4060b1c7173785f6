/**
 * `npm run bench -- soak`: what a server must bear from its clients, again and again for minutes: each gets the right
 * status, nothing hangs, and afterwards everything is free. Ends with code 1 if not.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { badConfig } from '../core/contract/failures.ts';
import { openTools } from '../test/run/tools.ts';
import { countFlag, median, quantile, type Bench, type Flags } from './bench.ts';
import { CASES, chat, resultOf, type Case, type Result, type Round } from './soak-cases.ts';
import type { Client, Outcome } from './soak-client.ts';
import { startSoakServe } from './soak-serve.ts';
import { holdsWithin, MODELS, startSoakServer, type Gauges, type SoakServer } from './soak-server.ts';

export const soak: Bench = {
  name: 'soak',
  summary: 'ten kinds of abuse beside an ordinary load: statuses, hangs, memory, and what is in use afterwards',
  flags: { minutes: '5', beside: '4', server: 'engine' },
  run,
};

/** The GPU worker's own server, and `temper serve` before one. */
const SERVERS: Readonly<Record<string, typeof startSoakServer>> = { engine: startSoakServer, serve: startSoakServe };
const SAMPLE_MS = 1000;
const MINUTE_MS = 60_000;
/** After a round: what is not free by then is not freed at all. */
const REST_MS = 20_000;
/** MiB a minute. A round asks some 6,500 times; 1 KiB kept of each is more. */
const MOST_GROWTH = 4;
/** MiB. By so much memory at rest differs from round to round without a leak. */
const NOISE = 48;
/** The first round fills caches and pools. */
const WARM_UP_ROUNDS = 1;

/** At rest after a round. */
interface Rest extends Gauges {
  readonly atMs: number;
  readonly isFree: boolean;
}

interface Tally {
  readonly asked: number;
  readonly endings: Record<string, number>;
  readonly wrong: number;
}

async function run(flags: Flags): Promise<object> {
  const [minutes, beside] = [countFlag(flags, 'minutes'), countFlag(flags, 'beside')];
  const start = SERVERS[flags.server!];
  if (start === undefined)
    throw badConfig(`--server must be ${Object.keys(SERVERS).join(' or ')}, got ${flags.server}`);
  const folder = mkdtempSync(join(tmpdir(), 'temper-bench-soak-'));
  const { python } = await openTools();
  const server = await start(python, folder);
  try {
    return await measure(server, minutes, beside);
  } finally {
    await server.close();
    rmSync(folder, { recursive: true });
  }
}

async function measure(server: SoakServer, minutes: number, beside: number): Promise<object> {
  const { ask } = server;
  await askEach(ask);
  const begin = await server.gauges();
  const load = new OrdinaryLoad(ask, beside);
  const peak = watchPeak(server);
  const found = new Map<string, Result[]>();
  const rests: Rest[] = [];
  const endMs = Date.now() + minutes * MINUTE_MS;
  for (let number = 0; Date.now() < endMs || rests.length < WARM_UP_ROUNDS + 2; number++) {
    load.start();
    const round = { server, number, beside };
    for (const each of CASES) found.set(each.name, [...(found.get(each.name) ?? []), ...(await playCase(each, round))]);
    await load.stop();
    rests.push(await waitForRest(server, begin));
    const { residentMib, frontMib, tasks, files } = rests.at(-1)!;
    const memory = `${residentMib.toFixed(0)} MiB, ${frontMib.toFixed(0)} MiB before it`;
    console.log(`round ${number + 1} at rest: ${memory}, ${tasks} tasks, ${files} files`);
  }
  const peakMib = peak.stop();
  return judge({ found, load, rests, begin, peakMib });
}

async function playCase({ name, ...each }: Case, round: Round): Promise<Result[]> {
  const startedAt = performance.now();
  const results = await each.play(round);
  const took = ((performance.now() - startedAt) / 1000).toFixed(1);
  for (const { wanted, endings, wrong } of results) {
    const shown = `  ${name.padEnd(22)} ${wanted.padEnd(36)} ${endings.length - wrong.length} of ${endings.length}`;
    console.log(`${shown.padEnd(74)} ${took} s`);
    for (const { ending, text } of wrong.slice(0, 2)) console.log(`    ${ending}: ${text.slice(0, 200)}`);
  }
  return results;
}

/**
 * One short request to each model. The first one loads it. A later one, asked alone, has the engine give back the memory
 * of a slot table that was made for long requests: what is left is comparable.
 */
async function askEach(ask: Client): Promise<void> {
  for (const { name } of Object.values(MODELS)) {
    for (;;) {
      const { ending, text } = await ask(chat({ model: name, max_tokens: 1 }));
      if (ending === 200) break;
      if (ending !== 503) throw new Error(`${name} is not served: ${ending} ${text}`);
      await sleep(SAMPLE_MS);
    }
  }
}

/** Streams, each begun when the one before it has ended. */
class OrdinaryLoad {
  readonly outcomes: Outcome[] = [];
  readonly #ask: Client;
  readonly #clients: number;
  #isOn = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(ask: Client, clients: number) {
    this.#ask = ask;
    this.#clients = clients;
  }

  start(): void {
    this.#isOn = true;
    this.#running = Promise.all(Array.from({ length: this.#clients }, (_, i) => this.#askOn(i)));
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await this.#running;
  }

  async #askOn(client: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let seed = client;
    while (this.#isOn) {
      this.outcomes.push(await this.#ask({ ...chat({ seed, stream: true, max_tokens: 16 }), agent }));
      seed += this.#clients;
    }
    agent.destroy();
  }
}

async function waitForRest(server: SoakServer, begin: Gauges): Promise<Rest> {
  const areFree = ({ running, waiting, kvCacheUsage, tasks, files }: Gauges): boolean =>
    running + waiting + kvCacheUsage === 0 && tasks <= begin.tasks && files <= begin.files;
  const isFree = await holdsWithin(server, areFree, REST_MS);
  await askEach(server.ask);
  return { ...(await server.gauges()), isFree, atMs: Date.now() };
}

function watchPeak(server: SoakServer): { stop(): number } {
  let peakMib = 0;
  const timer = setInterval(() => {
    server.gauges().then(
      (gauges) => (peakMib = Math.max(peakMib, totalMib(gauges))),
      () => undefined,
    );
  }, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      return peakMib;
    },
  };
}

interface Found {
  readonly found: ReadonlyMap<string, Result[]>;
  readonly load: OrdinaryLoad;
  readonly rests: readonly Rest[];
  readonly begin: Gauges;
  readonly peakMib: number;
}

function judge({ found, load, rests, begin, peakMib }: Found): object {
  const cases = Object.fromEntries([...found].map(([name, results]) => [name, tallyOf(results)]));
  const isRight = ({ ending, text }: Outcome): boolean => ending === 200 && text.includes('[DONE]');
  const firstMs = load.outcomes.flatMap((outcome) => outcome.firstMs ?? []);
  const ordinary = {
    ...tallyOf([resultOf('200', load.outcomes, isRight)]),
    firstMs: { p50: median(firstMs), p99: quantile(firstMs, 0.99) },
  };
  const compared = rests.slice(WARM_UP_ROUNDS);
  const growth = growthOf(compared);
  const grownMib = totalMib(compared.at(-1)!) - totalMib(compared[0]!);
  const memory = {
    beginMib: totalMib(begin),
    restMib: rests.map((rest) => Math.round(totalMib(rest))),
    peakMib,
    mibPerMinute: growth,
    grownMib,
  };
  const free = rests.every(({ isFree }) => isFree);
  const isSound = [...Object.values(cases), ordinary].every((tally) => tally.wrong === 0);
  const ok = isSound && free && (growth <= MOST_GROWTH || grownMib <= NOISE);
  console.log(
    `first token of ordinary requests: p50 ${ordinary.firstMs.p50.toFixed(0)} ms, p99 ${ordinary.firstMs.p99.toFixed(0)} ms`,
  );
  console.log(
    `memory at rest grew by ${grownMib.toFixed(0)} MiB, ${growth.toFixed(1)} MiB a minute (a leak: above ${NOISE} and ${MOST_GROWTH}); all free: ${free}`,
  );
  if (!ok) process.exitCode = 1;
  return { ok, rounds: rests.length, cases, ordinary, memory, atRest: { begin, end: rests.at(-1) } };
}

function tallyOf(results: readonly Result[]): Tally {
  const all = results.flatMap(({ endings }) => endings);
  const counts: Record<string, number> = {};
  for (const ending of all) counts[ending] = (counts[ending] ?? 0) + 1;
  return { asked: all.length, endings: counts, wrong: results.flatMap(({ wrong }) => wrong).length };
}

/** Sum of both processes. */
function totalMib({ residentMib, frontMib }: Gauges): number {
  return residentMib + frontMib;
}

/** Growth of memory at rest: the median over all pairs of rounds, which a single odd round does not move. */
function growthOf(rests: readonly Rest[]): number {
  const slopes = rests.flatMap((later, index) =>
    rests
      .slice(0, index)
      .map((earlier) => ((totalMib(later) - totalMib(earlier)) * MINUTE_MS) / (later.atMs - earlier.atMs)),
  );
  return median(slopes);
}
