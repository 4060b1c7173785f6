/** Plan of a fork: its parent's configuration with the changes by flags, and the checkpoint that it starts from. */
import { roleTrainOptions } from '../../core/roles.ts';
import { readRun } from '../../store/records/run-reader.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { readChatTemplate } from '../planning/chat-template.ts';
import { readCheckpointName } from '../command-line/values.ts';
import { judgeOptions } from '../planning/check-judge.ts';
import { checkRunName } from '../planning/find-existing.ts';
import { findParent, readParentModel } from '../planning/find-parent.ts';
import { readKlReference } from '../planning/kl-reference.ts';
import { loadAgent } from '../planning/load-agent.ts';
import { planRun, type RunPlan } from '../planning/plan-run.ts';
import { roleOptions } from '../planning/read-roles.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';
import type { ForkContext } from './command.ts';
import { inheritFrom } from './forked-config.ts';

export async function planFork(context: ForkContext): Promise<RunPlan> {
  const { flags, args, project, cwd, env } = context;
  const parentName = readCheckpointName(args.parent);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const run = checkRunName(flags.run);
  const agentFile = await loadAgent(args.agent, cwd);
  const store = await openProjectStore(project, env);
  const known = await readRun(store, run);
  const recorded = known?.file.config ?? null;
  const parent = await findParent(store, parentName, recorded);
  const reference = await readKlReference(store, flags['kl-reference'], recorded);
  const values = fieldsOf(flags, template, reference?.adapter);
  const model = await readParentModel(parent, flags['base-model'], template, context);
  const { agent } = agentFile;
  const ofAgent = { ...judgeOptions(agent), ...(await roleOptions(agent, { store, env })) };
  const names = { run, agent: agent.name, baseModel: model.name, ...ofAgent };
  const inherited = inheritFrom(parent.config, values);
  const train = { ...inherited.train, ...roleTrainOptions(agent) };
  const asked = applyRunFlags({ ...inherited, ...names, train, parent: parent.checkpoint }, values);
  const given = { agentFile, template, adapter: null, examples: null, hasOwnMicroBatch: true };
  return planRun({ asked, model, parent, known, reference, store, flags, ...given }, context);
}
