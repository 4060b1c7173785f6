/** `npm run bench -- NAME [flags]`: prints one table; the last line is one JSON object. */
import { badConfig } from '../core/contract/failures.ts';
import { describeError, EXIT } from '../cli/command-line/errors.ts';
import { ablations } from './ablations.ts';
import { parseFlags, type Bench } from './bench.ts';
import { call } from './call.ts';
import { endtoend } from './endtoend.ts';
import { engine } from './engine.ts';
import { gpu } from './gpu.ts';
import { long } from './long.ts';
import { mcpBench } from './mcp.ts';
import { memory } from './memory.ts';
import { overlap } from './overlap.ts';
import { receipts } from './receipts.ts';
import { scenarios } from './scenarios.ts';
import { soak } from './soak.ts';
import { start } from './start.ts';
import { step } from './step.ts';
import { tracking } from './tracking.ts';
import { trainer } from './trainer.ts';
import { ui } from './ui.ts';

const BENCHES: readonly Bench[] = [
  step,
  call,
  engine,
  trainer,
  endtoend,
  receipts,
  overlap,
  ablations,
  long,
  memory,
  mcpBench,
  gpu,
  scenarios,
  soak,
  start,
  tracking,
  ui,
];

async function main([name, ...args]: readonly string[]): Promise<void> {
  const bench = BENCHES.find((candidate) => candidate.name === name);
  if (bench === undefined) throw badConfig(name === undefined ? 'no bench named' : `no bench ${name}`);
  const result = await bench.run(parseFlags(bench, args));
  console.log(JSON.stringify({ bench: bench.name, ...result }));
}

function list(): string {
  const lines = BENCHES.map(({ name, flags, summary }) => {
    const shown = Object.entries(flags).map(([flag, value]) => `[--${flag} ${value}]`);
    return `  npm run bench -- ${name} ${shown.join(' ')}\n      ${summary}`;
  });
  return ['There are:', ...lines].join('\n');
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  const { text, exitCode } = describeError(error);
  console.error(exitCode === EXIT.usage ? `bench: ${(error as Error).message}\n${list()}` : text);
  process.exitCode = exitCode;
}
