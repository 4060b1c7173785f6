import { statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { badConfig } from '../../core/contract/failures.ts';
import { plural } from '../../core/reports/format.ts';
import { EXIT } from '../command-line/errors.ts';
import { withEngine } from '../players/with-engine.ts';
import { printJson } from '../terminal/output.ts';
import type { TryContext } from './command.ts';
import { groupLines, summaryLines } from './lines.ts';
import { playTry, type TriedGroup, type TrySummary, type TriedAttempt } from './play.ts';
import { planTry, type TryPlan } from './plan-try.ts';
import { warningsOf } from './warnings.ts';
import { mean } from '../../core/numbers/statistics.ts';
import { isPlayedByCheckpoint } from '../../play/roles/role-definition.ts';
import type { Agent } from '../../play/agent.ts';
import { isExternal } from '../../play/external.ts';
import { isRuler } from '../../play/judge/ruler.ts';

export async function tryAgent(context: TryContext): Promise<number> {
  const saveFolder = folderOf(context);
  const plan = await planTry(context);
  const groups = await withEngine(plan, context, (engine) => play(plan, context, engine, saveFolder));
  const summary = summarise(plan, groups);
  tell(context, summary, saveFolder);
  refuseUnusedRoles(plan, groups);
  const attempts = groups.flatMap((group) => group.attempts);
  return attempts.every(({ record }) => record.status === 'ok') ? EXIT.ok : EXIT.failed;
}

function folderOf({ flags, cwd }: TryContext): string | null {
  if (flags.save === null) return null;
  const folder = resolve(cwd, flags.save);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? true) return folder;
  throw badConfig(`--save must name a folder, got the file ${folder}; pass another name`);
}

function play(
  plan: TryPlan,
  { flags, output, signal }: TryContext,
  engine: Parameters<typeof playTry>[0]['engine'],
  saveFolder: string | null,
): Promise<TriedGroup[]> {
  return playTry({
    plan,
    engine,
    signal,
    saveFolder,
    tell: (line) => output.errorLine(line),
    onGroup: (group) => {
      if (!flags.json) for (const line of groupLines(group, output.columns)) output.line(line);
    },
  });
}

function summarise({ agentFile, player, scenarios, of }: TryPlan, groups: readonly TriedGroup[]): TrySummary {
  const { name, reward, roles = {} } = agentFile.agent;
  const standIns = Object.entries(roles).filter(([, role]) => isPlayedByCheckpoint(role));
  const notes = [
    ...(scenarios.length < of
      ? [`played ${scenarios.length} of ${plural(of, 'scenario')}, a sample that is the same each time`]
      : []),
    ...(player.hosted === null
      ? []
      : [
          'a hosted model returns no token ids, and is asked whatever the agent asks: rewritten histories, and parameters that training refuses, were not checked; play on pocket or a checkpoint to check them',
        ]),
    ...noteOfRewards(reward),
  ];
  if (standIns.length > 0)
    notes.push(
      `in a run, checkpoints play ${standIns.map(([role]) => role).join(', ')}; here ${player.name} played every role`,
    );
  return { agent: name, model: player.name, groups, warnings: warningsOf(groups), notes };
}

function noteOfRewards(reward: Agent['reward']): string[] {
  if (isRuler(reward)) return [`the judge ${reward.judge.name} was not asked: rewards are what the rollout returned`];
  if (!isExternal(reward)) return [];
  return ['a run waits for rewards from outside; the rewards here are what the rollout returned'];
}

/** A role that no attempt calls has nothing to train. */
function refuseUnusedRoles({ agentFile }: TryPlan, groups: readonly TriedGroup[]): void {
  const { name, roles = {} } = agentFile.agent;
  const played = groups.flatMap(({ attempts }) => attempts).filter(({ record }) => record.status === 'ok');
  if (played.length === 0) return;
  const called = new Set(played.flatMap(({ record }) => record.calls.map(({ role }) => role)));
  const unused = Object.keys(roles).find((role) => roles[role]!.kind === 'policy' && !called.has(role));
  if (unused === undefined) return;
  throw badConfig(
    `the role ${unused} of the agent ${name} must be called by its rollout, got no call in ${plural(played.length, 'attempt')}; call roles.${unused}.openai, or remove the role`,
  );
}

function tell({ flags, output, cwd }: TryContext, summary: TrySummary, saveFolder: string | null): void {
  if (flags.json) {
    printJson(output, viewJson(summary));
    return;
  }
  for (const line of summaryLines(summary)) output.line(line);
  if (saveFolder !== null) output.line(`attempts: ${relative(cwd, saveFolder) || saveFolder}`);
}

function viewJson({ agent, model, groups, warnings, notes }: TrySummary): object {
  return { agent, model, scenarios: groups.map(viewGroup), warnings, notes };
}

function viewGroup({ scenarioId, attempts }: TriedGroup): object {
  const rewards = attempts.flatMap(({ record }) => record.reward ?? []);
  return { scenario: scenarioId, meanReward: mean(rewards), attempts: attempts.map(viewTried) };
}

function viewTried({ record, asked, seconds, promptTokens, completionTokens, thrownAt, replay }: TriedAttempt): object {
  const { attempt, reward, metrics, failure, logs, truncated, hostedCalls } = record;
  return {
    attempt,
    reward,
    metrics,
    failure: failure?.message ?? null,
    thrownAt,
    logs,
    truncated,
    promptTokens,
    completionTokens,
    seconds,
    replay,
    calls: asked.map(({ request, message, finishReason }) => ({ request, message, finishReason })),
    ...(hostedCalls && { hostedCalls }),
  };
}
