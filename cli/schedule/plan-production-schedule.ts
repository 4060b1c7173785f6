/** Plan of a schedule whose runs train recorded conversations. Which ones, each firing decides. */
import type { ProductionSource, RunConfig } from '../../core/contract.ts';
import { findConfiguredCheckpoint } from '../../store/records/find-policy.ts';
import { findProductionStart } from '../../store/records/production-firings.ts';
import { openProjectStore } from '../../workers/config/project-store.ts';
import { readChatTemplate } from '../planning/chat-template.ts';
import { readKlReference } from '../planning/kl-reference.ts';
import { loadAgent } from '../planning/load-agent.ts';
import { checkAsked, pinRun } from '../planning/plan-run.ts';
import { expectProduction, productionOptions, refusePlayFlags } from '../planning/read-production.ts';
import { applyRunFlags, fieldsOf } from '../planning/run-flags.ts';
import { readCheckpointName } from '../command-line/values.ts';
import type { ScheduleCreateContext } from './command.ts';
import { checkScheduleName, parseTiming, readConfiguredModel, type SchedulePlan } from './plan-schedule.ts';

export async function planProductionSchedule(
  context: ScheduleCreateContext,
  source: ProductionSource,
): Promise<SchedulePlan> {
  const { flags, args, project, cwd, env } = context;
  const [name, timing] = [checkScheduleName(flags.name), parseTiming(flags)];
  refusePlayFlags(flags);
  const agentFile = await loadAgent(args.agent, cwd);
  const template = await readChatTemplate(flags['chat-template'], cwd);
  const store = await openProjectStore(project, env);
  const from =
    flags.from === null ? null : (await findConfiguredCheckpoint(store, readCheckpointName(flags.from))).checkpoint;
  const begins = await findProductionStart(store, source, from);
  const parent = { ...(await findConfiguredCheckpoint(store, begins)), checkpoint: begins };
  const model = await readConfiguredModel(flags['base-model'] ?? parent.config.baseModel, context, template !== null);
  const reference = await readKlReference(store, flags['kl-reference'], null);
  const names = { run: name, agent: agentFile.agent.name, baseModel: model.name };
  const production = expectProduction(source, begins);
  const asked = applyRunFlags(
    { ...names, ...productionOptions(parent), production },
    fieldsOf(flags, template, reference?.adapter),
  );
  const run = { asked, model, agentFile, parent, known: null, adapter: null, reference, store, flags: null };
  await checkAsked(run, context);
  const { config } = await pinRun(run, context);
  await store.checkWritable();
  return { name, timing, config: asTemplate(config), from, begins, template, store, production: source };
}

/** Each firing sets them. */
function asTemplate({ production: _production, ...config }: RunConfig): RunConfig {
  return { ...config, parent: null };
}
