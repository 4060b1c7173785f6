import pLimit from 'p-limit';
import {
  listDeployments,
  stateOfDeployment,
  type RecordedDeployment,
} from '../../store/records/production/deployments.ts';
import { listRuns, requireRun } from '../../store/records/runs/run-reader.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { EXIT } from '../command-line/errors.ts';
import { READ_AT_ONCE } from '../../store/records/runs/read-runs.ts';
import { printJson } from '../terminal/output.ts';
import { createTable } from '../terminal/table.ts';
import type { DeploymentsContext } from './command.ts';
import { deploymentJson, describePlace, describeProof } from './describe-deployment.ts';

const HEAD = ['checkpoint', 'target', 'state', 'where', 'proof', 'since'];

export async function showDeployments({ args, flags, project, env, output }: DeploymentsContext): Promise<number> {
  const store = await openProjectStore(project, env);
  if (args.run !== null) await requireRun(store, args.run);
  const runs = args.run === null ? await listRuns(store) : [args.run];
  const deployments = (await pLimit(READ_AT_ONCE).map(runs, (run) => listDeployments(store, run))).flat();
  if (flags.json) printJson(output, deployments.map(deploymentJson));
  else if (deployments.length === 0)
    output.line('nothing was deployed; deploy a checkpoint: temper deploy RUN --to TARGET');
  else output.line(createTable(HEAD, deployments.map(cellsOf)));
  return EXIT.ok;
}

function cellsOf(deployment: RecordedDeployment): string[] {
  const { policy, target, stages, finished, status } = deployment;
  const state = stateOfDeployment(deployment);
  const stage = stages[finished.length];
  const told = [state, stage, status?.stage === stage && status?.message].filter(Boolean).join(', ');
  const since = state === 'deployed' ? finished.at(-1)?.at : status?.at;
  return [policy, target, told, describePlace(deployment), describeProof(deployment), since ?? deployment.at];
}
