import { ACTIVITIES } from './activities.ts';
import { ADAPTERS } from './adapters.ts';
import { BROWSER } from './browser.ts';
import { CLI } from './cli.ts';
import { CUDA } from './cuda.ts';
import { DURABLE } from './durable.ts';
import { LOSSES } from './losses.ts';
import type { Mutant } from './mutant.ts';
import { OUTBOUND } from './outbound.ts';
import { PLANS } from './plans.ts';
import { RANKS } from './ranks.ts';
import { SDK } from './sdk.ts';
import { SUPERVISED } from './supervised.ts';
import { TRAINING } from './training.ts';
import { WORKERS } from './workers.ts';
import { WORKFLOWS } from './workflows.ts';
import { VIEWS } from './views.ts';

export const MUTANTS: readonly Mutant[] = [
  ...DURABLE,
  ...LOSSES,
  ...RANKS,
  ...SUPERVISED,
  ...ADAPTERS,
  ...CUDA,
  ...TRAINING,
  ...PLANS,
  ...WORKFLOWS,
  ...ACTIVITIES,
  ...WORKERS,
  ...CLI,
  ...SDK,
  ...OUTBOUND,
  ...VIEWS,
  ...BROWSER,
];

/** The text with the mutant in it. */
export function mutate(text: string, { name, file, find, replace }: Mutant): string {
  const count = text.split(find).length - 1;
  if (count === 1) return text.replace(find, () => replace);
  throw new Error(
    `the anchor of the mutant "${name}" must occur exactly once in ${file}, it occurs ${count} times: ${JSON.stringify(find)}; mend it in test/mutants/table.ts`,
  );
}
