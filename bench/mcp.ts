/** `npm run bench -- mcp`: attempts with an MCP server each, many at once: what they take, and what is left of them. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { MARK_VARIABLE, PROCESS_MARK } from '../play/programs/program-leash.ts';
import { mcp } from '../sdk/mcp/mcp.ts';
import { startFakeEngine } from '../test/fake-engine.ts';
import { playAttempts } from '../test/play/play.ts';
import { countFlag, type Bench, type Flags } from './bench.ts';

const PROGRAM = fileURLToPath(new URL('mcp_server.py', import.meta.url));
const MB = 1024 ** 2;
const HOUR_MS = 3_600_000;
/** Growth that counts as flat: the first rounds fill caches. */
const GROWTH = 1.15;

interface Round {
  readonly seconds: number;
  readonly rssMb: number;
  readonly heapMb: number;
  /** Processes of servers, and of what they forked. */
  readonly processesLeft: number;
}

export const mcpBench: Bench = {
  name: 'mcp',
  summary: 'attempts with an isolated MCP server each, which forks: time, memory, and processes that are left behind',
  flags: { attempts: '2048', 'at-once': '256', calls: '4' },
  run,
};

async function run(flags: Flags): Promise<object> {
  const [attempts, atOnce, calls] = [
    countFlag(flags, 'attempts'),
    countFlag(flags, 'at-once'),
    countFlag(flags, 'calls'),
  ];
  const engine = await startFakeEngine();
  const server = mcp({ command: 'python3', args: ['-S', '-E', PROGRAM], isolate: true, startTimeoutMs: 120_000 });
  const rounds: Round[] = [];
  console.log(`${atOnce} attempts at once, each with a server of its own, ${calls} calls and a fork`);
  try {
    for (let played = 0; played < attempts; played += atOnce) {
      const begun = performance.now();
      const records = await playAttempts(
        engine,
        async (context) => {
          const [add, fork] = await server.tools(context);
          await fork!.text({});
          let last = '';
          for (let call = 0; call < calls; call++) last = await add!.text({ call });
          return Number(last);
        },
        { attempts: atOnce, concurrency: atOnce, rollout: { attemptTimeoutMs: HOUR_MS } },
      );
      const wrong = records.find(({ reward }) => reward !== calls);
      if (wrong !== undefined) throw new Error(`an attempt ended with ${wrong.failure?.message ?? wrong.reward}`);
      rounds.push(measure((performance.now() - begun) / 1000));
      const { seconds, rssMb, heapMb, processesLeft } = rounds.at(-1)!;
      console.log(
        `  ${played + atOnce} attempts  ${seconds.toFixed(1)} s  ${rssMb.toFixed(0)} MB resident, ${heapMb.toFixed(0)} MB heap, ${processesLeft} processes left`,
      );
    }
  } finally {
    await engine.close();
  }
  const middle = rounds[rounds.length >> 1]!;
  const isFlat = rounds.at(-1)!.heapMb <= middle.heapMb * GROWTH;
  const left = Math.max(...rounds.map(({ processesLeft }) => processesLeft));
  return { attempts, atOnce, calls, rounds, processesLeft: left, isWithin: isFlat && left === 0 };
}

function measure(seconds: number): Round {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return { seconds, rssMb: rss / MB, heapMb: heapUsed / MB, processesLeft: countMarked() };
}

/** Processes that this one started, or that those did. */
function countMarked(): number {
  const mark = `${MARK_VARIABLE}=${PROCESS_MARK}`;
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && environOf(name).includes(mark)).length;
}

function environOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    // It has ended meanwhile, or is another user's.
    return '';
  }
}
