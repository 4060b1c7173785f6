/** Tests that show the effect of each flag of temper deploy and temper deployments. */
import { byTest, type ShownByTest } from '../by-test.ts';

const DEPLOYED = byTest(
  'workflows/deploy.test.ts',
  'temper deploy starts the workflow or joins it, follows it, and deploys again when it is asked to',
);
const OPTIONS = byTest('cli/deploy.test.ts', 'options are those of the target, and what they must look like is said');
const BASE = byTest('cli/deploy.test.ts', 'the base model must have a name at the target, and the run an adapter');
const PLANNED = byTest(
  'cli/deploy.test.ts',
  'what is deployed, under which names and with which stages, follows from the flags',
);

/** Rows by command and flag. */
export const DEPLOY_FLAGS: Readonly<Record<string, ShownByTest>> = {
  'deploy --to': OPTIONS,
  'deploy --wait': DEPLOYED,
  'deploy --repo': OPTIONS,
  'deploy --public': DEPLOYED,
  'deploy --bucket': OPTIONS,
  'deploy --model-name': PLANNED,
  'deploy --endpoint': PLANNED,
  'deploy --account': OPTIONS,
  'deploy --deployment': PLANNED,
  'deploy --replace': OPTIONS,
  'deploy --entity': PLANNED,
  'deploy --project': PLANNED,
  'deploy --url': PLANNED,
  'deploy --folder': PLANNED,
  'deploy --quantize': PLANNED,
  'deploy --base-model': BASE,
  'deploy --prompts': PLANNED,
  'deploy --no-proof': DEPLOYED,
  'deploy --again': DEPLOYED,
  'deploy --json': DEPLOYED,
  'deployments --json': DEPLOYED,
};
