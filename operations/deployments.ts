/** Looks at deployments; `temper deploy` makes them. */
import { defineOperation } from './operation.ts';

const work = () => import('./describe-deployment.ts');

export const deployList = defineOperation({
  name: 'deploy list',
  summary: 'list where checkpoints are deployed, with their proofs',
  details: ['Reads the store and needs no server.'],
  arguments: { run: { placeholder: 'RUN', optional: true } },
  flags: {},
  effect: 'reads',
  run: async ({ run }, place) => (await work()).listAllDeployments(await place.store(), run),
  lines: async (found) => {
    if (found.length === 0) return ['nothing was deployed; deploy a checkpoint: temper deploy RUN --to TARGET'];
    const { describeProof } = await work();
    const rows = found.map((one) => [
      one.policy,
      one.target,
      [one.state, one.stage, one.message].filter(Boolean).join(', '),
      one.place ?? '–',
      describeProof(one),
      one.since,
    ]);
    return [{ head: ['checkpoint', 'target', 'state', 'where', 'proof', 'since'], rows }];
  },
});
