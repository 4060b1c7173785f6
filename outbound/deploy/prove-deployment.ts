/** The last stage: that what was deployed is the checkpoint. Answers are compared where something answers, else bytes. */
import { TemperError } from '../../core/failures.ts';
import type { Made } from '../../store/records/deployments.ts';
import { requireKey } from '../http.ts';
import type { Proof, ProofRequest, StageContext } from './targets/target.ts';
import { requireTarget } from './targets.ts';

export async function proveDeployment(
  context: StageContext,
  prove: (request: ProofRequest) => Promise<Proof>,
): Promise<Made> {
  const { deployment, made, env, store, fetch, signal } = context;
  const target = requireTarget(deployment.target);
  const address = target.address(deployment, made, env);
  if (address === null) return compareBytes(context);
  const { keyVariable } = address;
  const key = keyVariable === null ? null : requireKey(env, keyVariable, deployment.target);
  const { verdict, detail, prompts, measured } = await prove({ store, deployment, address, key, fetch, signal });
  if (verdict === 'matches') return { verdict, detail, prompts, ...measured };
  throw new TemperError(
    'DeploymentFailed',
    `${address.model} at ${deployment.target} is not ${deployment.policy} (${verdict}): ${detail}`,
  );
}

async function compareBytes(context: StageContext): Promise<Made> {
  const { policy, target: name } = context.deployment;
  const target = requireTarget(name);
  if (target.verify === undefined)
    return { verdict: 'none', detail: 'nothing serves it yet, so that no prompt could be sent' };
  const difference = await target.verify(context);
  const { length: files } = await context.files();
  if (difference === null) return { verdict: 'same-bytes', detail: 'the files there are those of the store', files };
  throw new TemperError(
    'DeploymentFailed',
    `what is at ${name} is not ${policy}: ${difference}; deploy it again with --again`,
  );
}
