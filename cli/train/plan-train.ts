/** Plan of a run from an agent's file and flags. */
import { layoutOf } from '../../core/run-defaults.ts';
import { roleTrainOptions } from '../../core/roles.ts';
import { startFrom } from '../../store/records/peft-adapter.ts';
import { readRun } from '../../store/records/run-reader.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { readBaseModel, requireBaseModel } from '../planning/base-model.ts';
import { readChatTemplate } from '../planning/chat-template.ts';
import { judgeOptions } from '../planning/check-judge.ts';
import { checkRunName } from '../planning/find-existing.ts';
import { readKlReference } from '../planning/kl-reference.ts';
import { loadAgent } from '../planning/load-agent.ts';
import { planRun, type RunPlan } from '../planning/plan-run.ts';
import { readWarmStart } from '../planning/read-examples.ts';
import { roleOptions } from '../planning/read-roles.ts';
import { readProductionSource } from '../planning/read-production.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';
import { readStartAdapter } from '../planning/start-adapter.ts';
import { UsageError } from '../command-line/errors.ts';
import type { TrainContext } from './command.ts';
import { planProductionRun } from './plan-production-run.ts';

export async function planTrain(context: TrainContext): Promise<RunPlan> {
  const { flags, args, project, cwd, env } = context;
  const source = readProductionSource(flags);
  if (source !== null) return planProductionRun(context, source);
  refuseIdleFrom(flags);
  const named = requireBaseModel(flags);
  const name = flags.run === null ? null : checkRunName(flags.run);
  const agentFile = await loadAgent(args.agent, cwd);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const adapter = await readStartAdapter(flags.adapter, cwd);
  const model = await readBaseModel(named, context, template !== null);
  const { agent } = agentFile;
  const names = { run: name ?? agent.name, agent: agent.name, baseModel: model.name };
  const store = await openProjectStore(project, env);
  const known = await readRun(store, names.run);
  const recorded = known?.file.config ?? null;
  const reference = await readKlReference(store, flags['kl-reference'], recorded);
  const values = fieldsOf(flags, template, reference?.adapter);
  const { options, examples } = await readWarmStart(flags['warm-start'], values, cwd);
  const train = { ...layoutOf(recorded), ...roleTrainOptions(agent) };
  const ofAgent = { ...judgeOptions(agent), ...(await roleOptions(agent, { store, env })) };
  const fresh = { ...names, ...ofAgent, train, ...options };
  const asked = applyRunFlags(startFrom(adapter, fresh), values);
  const hasOwnMicroBatch = values.has('train.microBatchTokens');
  const files = { agentFile, template, adapter, examples };
  return planRun({ asked, model, parent: null, known, reference, hasOwnMicroBatch, store, flags, ...files }, context);
}

function refuseIdleFrom({ from }: TrainContext['flags']): void {
  if (from === null) return;
  throw new UsageError(
    `--from has no effect without --from-production; to start from a checkpoint, run temper fork ${from} AGENT --run NAME`,
  );
}
