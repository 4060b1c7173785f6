/** Starts a run from a checkpoint of another run, with the parent's configuration and the settings that were changed. */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { RunConfig } from '../../../core/contract/contract.ts';
import { badConfig } from '../../../core/contract/failures.ts';
import { branchOfStep } from '../../../core/names/lineage.ts';
import { NAME_PATTERN } from '../../../core/contract/wire-constants.ts';
import { policyName } from '../../../core/names/policy-name.ts';
import type { Place, Plan } from '../../../operations/operation.ts';
import { requireServer } from '../../../operations/server.ts';
import { parseSettings } from '../../../operations/settings.ts';
import { startRun } from '../../../operations/start-run.ts';
import { requireFound } from '../../../operations/steer-run.ts';
import { shellText } from '../../../operations/words.ts';
import { readRun } from '../../../store/records/runs/run-reader.ts';
import { forkedConfig } from '../../planning/inherited-config.ts';
import { findParent } from '../../planning/find-parent.ts';

interface ForkInput {
  readonly run: string;
  readonly step: number;
  readonly name: string;
  /** `KEY=VALUE` */
  readonly set: readonly string[];
}

interface PlannedFork extends Plan {
  readonly checkpoint: string;
  readonly config: RunConfig;
}

export async function planFork(place: Place, { run, step, name, set }: ForkInput): Promise<PlannedFork> {
  const { state } = await requireFound(place, run);
  const store = await place.store();
  checkName(name);
  if ((await readRun(store, name)) !== null)
    throw badConfig(`the run ${name} exists already; choose another name for the fork`);
  const parent = await findParent(store, { run, branch: branchOfStep(state?.lineage ?? [], step), step }, null);
  const settings = set.length === 0 ? {} : parseSettings(set);
  const config = forkedConfig(parent, name, settings);
  const changed = set.length === 0 ? 'the same configuration' : `the configuration of ${run} with ${set.join(', ')}`;
  const checkpoint = policyName(parent.checkpoint);
  return {
    checkpoint,
    config,
    says: `${name} starts from ${checkpoint} with ${changed} and trains ${config.steps} steps of its own. ${run} is not changed, and nothing is copied. A worker must play ${config.agent}: where none runs, start temper dev --agent FILE.`,
    command: shellText(['temper', 'train', 'AGENT', '--from', checkpoint, '--run', name, ...forkFlags(settings)]),
  };
}

export async function startFork(place: Place, input: ForkInput) {
  const { checkpoint, config } = await planFork(place, input);
  const { name } = input;
  const server = await requireServer(place);
  try {
    const { project } = place;
    await startRun(server.client, { store: await place.store(), config, project, resume: null, conflict: 'FAIL' });
  } catch (cause) {
    if (!(cause instanceof WorkflowExecutionAlreadyStartedError)) throw cause;
    throw badConfig(`the run ${name} was started meanwhile; choose another name for the fork`, { cause });
  } finally {
    await server.close();
  }
  return { checkpoint, made: { run: name } };
}

function checkName(name: string): void {
  if (!NAME_PATTERN.test(name))
    throw badConfig(
      `name must be lower case letters, digits and ._- (at most 63, the first a letter or digit), got ${JSON.stringify(name)}; choose another name`,
    );
}

/** Flags of `temper train`: `--learning-rate 1e-5`. */
function forkFlags(settings: Readonly<Record<string, number>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => [
    `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    String(value),
  ]);
}
