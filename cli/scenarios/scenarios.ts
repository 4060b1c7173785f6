import { relative } from 'node:path';
import { describeSpending } from '../../core/rules/judge-spending.ts';
import { HostedLedger } from '../../play/hosted/hosted-ledger.ts';
import { EXIT } from '../command-line/errors.ts';
import { withEngine } from '../players/with-engine.ts';
import { printJson } from '../terminal/output.ts';
import type { ScenariosContext } from './command.ts';
import { originLine, scenarioLines, spendingTeller, viewScenarios } from './lines.ts';
import { makeScenarios } from './make-scenarios.ts';
import { planScenarios } from './plan-scenarios.ts';
import { writeScenarios } from './write-files.ts';

export async function generateScenarios(context: ScenariosContext): Promise<number> {
  const { flags, output, cwd, signal } = context;
  const plan = await planScenarios(context);
  const { store, work, files, maxUsd, concurrency } = plan;
  const tell = (line: string): void => output.errorLine(line);
  const ledger = await HostedLedger.open({ store, work, maxUsd, onSpent: spendingTeller(tell) });
  tell(originLine(plan.origin));
  if (ledger.spent.calls > 0) tell(`continues: ${describeSpending(ledger.spent)} before`);
  try {
    const world = { ledger, store, work, folder: cwd, concurrency, signal, tell };
    const made = await withEngine(plan.players, context, (engine) => makeScenarios(plan, { ...world, engine }));
    await writeScenarios(store, files.train, made.train);
    await writeScenarios(store, files.heldOut, made.heldOut);
    const paths = { train: relative(cwd, files.train), heldOut: relative(cwd, files.heldOut) };
    if (flags.json) printJson(output, viewScenarios(made, paths, ledger.spent));
    else for (const line of scenarioLines(made, paths, ledger.spent)) output.line(line);
    return EXIT.ok;
  } finally {
    await ledger.close();
  }
}
