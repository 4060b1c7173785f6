/** `deployStage`: one stage of a deployment. */
import { DeployStageInput } from '../core/contract/deploy.ts';
import { badConfig } from '../core/contract/failures.ts';
import { runStage } from '../outbound/deploy/run-stage.ts';
import type { Proof, ProofRequest, WriteGguf } from '../outbound/deploy/targets/target.ts';
import { readDeployment } from '../store/records/production/deployments.ts';
import { asActivity, type Scope } from './activity.ts';
import type { Dependencies } from './dependencies.ts';

export interface DeployDependencies extends Dependencies {
  /** With the keys of targets. */
  readonly env: NodeJS.ProcessEnv;
  readonly prove: (request: ProofRequest) => Promise<Proof>;
  readonly writeGguf: WriteGguf;
  /** For tests. */
  readonly pollMs?: number;
}

export function createDeployActivities(dependencies: DeployDependencies) {
  const { store, env, prove, writeGguf, logger, pollMs } = dependencies;

  async function deployStage({ run, id, stage }: DeployStageInput, scope: Scope): Promise<void> {
    const deployment = await readDeployment(store, run, id);
    if (deployment === null)
      throw badConfig(`the deployment ${id} of ${run} must be in the store, but is not; deploy again`);
    scope.showDetail(() => stage);
    const { signal, checkFresh } = scope;
    const polling = pollMs === undefined ? {} : { pollMs };
    await runStage({ store, deployment, stage, env, fetch, signal, prove, writeGguf, checkFresh, ...polling });
    logger.info({ run, deployment: id, stage }, 'finished a stage of a deployment');
  }

  return { deployStage: asActivity(dependencies, DeployStageInput, deployStage) };
}
