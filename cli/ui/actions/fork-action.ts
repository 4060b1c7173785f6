/** Starts a run from a checkpoint of another run, with the parent's configuration and the settings that were changed. */
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { branchOfStep } from '../../../core/lineage.ts';
import { NAME_PATTERN } from '../../../core/wire-constants.ts';
import { policyName } from '../../../core/policy-name.ts';
import { readRun } from '../../../store/records/run-reader.ts';
import type { ActionRequest } from '../../../views/api/requests.ts';
import { UsageError } from '../../command-line/errors.ts';
import { requireServer } from '../../connections/server.ts';
import { forkedConfig } from '../../fork/forked-config.ts';
import { findParent } from '../../planning/find-parent.ts';
import { startRun } from '../../session/start-run.ts';
import { parseSettings } from '../../steer/parse-settings.ts';
import type { PlanAction } from './planned-action.ts';
import { requireActed, requireStep, settingTexts } from './read-request.ts';
import { shellText } from './shell-text.ts';

export const planForkOf: PlanAction = async (request, place) => {
  const { run, state } = await requireActed(place.store, request);
  const step = requireStep(request);
  const { store } = place;
  const name = requireName(request);
  if ((await readRun(store, name)) !== null)
    throw new UsageError(`the run ${name} exists already; choose another name for the fork`);
  const parent = await findParent(store, { run, branch: branchOfStep(state?.lineage ?? [], step), step }, null);
  const texts = settingTexts(request);
  const settings = parseSettings(texts, { prefix: '', help: 'docs/ui-api.md' });
  const config = forkedConfig(parent, name, settings);
  const changed =
    texts.length === 0 ? 'the same configuration' : `the configuration of ${run} with ${texts.join(', ')}`;
  const checkpoint = policyName(parent.checkpoint);
  return {
    says: `${name} starts from ${checkpoint} with ${changed} and trains ${config.steps} steps of its own. ${run} is not changed, and nothing is copied. A worker must play ${config.agent}: where none runs, start temper dev --agent FILE.`,
    command: shellText(['temper', 'fork', checkpoint, 'AGENT', '--run', name, ...forkFlags(settings)]),
    perform: async () => {
      const server = await requireServer(place);
      try {
        await startRun(server.client, { store, config, project: place.project, goOn: null, conflict: 'FAIL' });
      } catch (cause) {
        if (!(cause instanceof WorkflowExecutionAlreadyStartedError)) throw cause;
        throw new UsageError(`the run ${name} was started meanwhile; choose another name for the fork`, { cause });
      } finally {
        await server.close();
      }
      return { says: `${name} was started from ${checkpoint}`, made: name };
    },
  };
};

function requireName({ name = '' }: ActionRequest): string {
  if (NAME_PATTERN.test(name)) return name;
  throw new UsageError(
    `name must be lower case letters, digits and ._- (at most 63, the first a letter or digit), got ${JSON.stringify(name)}; choose another name`,
  );
}

/** Flags of `temper fork`: `--learning-rate 1e-5`. */
function forkFlags(settings: Readonly<Record<string, number>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => [
    `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    String(value),
  ]);
}
