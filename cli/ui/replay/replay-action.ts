/**
 * Plays an attempt anew from one of its turns on, with another model: a new attempt beside the recorded one. The agent
 * runs from its beginning; calls before the turn get their recorded answers.
 */
import { relative } from 'node:path';
import { badConfig, TemperError } from '../../../core/contract/failures.ts';
import { plural } from '../../../core/reports/format.ts';
import { hashOf } from '../../../core/text/hashes.ts';
import { connectByKeys } from '../../../play/connections/connect-hosted.ts';
import { openAgentResources } from '../../../play/resources/agent-resources.ts';
import { playSingle } from '../../../play/single-attempt.ts';
import { publishReplay, readReplay, replayId, type NewReplay } from '../../../store/records/groups/replays.ts';
import type { AttemptRecord, CallRecord } from '../../../store/records/groups/trajectories.ts';
import type { Plan } from '../../../operations/operation.ts';
import type { Store } from '../../../store/store.ts';
import type { Engines, UiPlace } from '../chat/engines.ts';
import { findModel, type FoundModel } from '../chat/find-model.ts';
import { findAgentOf, type FoundAgent } from '../agents/find-agent.ts';
import { findReplayed, firstNewCall, type ReplayedOrigin } from './origin.ts';
import { answersOfEngine, answersOfHosted, journalBefore, ReplayEngine, type NewAnswers } from './replay-engine.ts';

interface ReplayInput {
  readonly run: string;
  readonly attempt: string;
  readonly fromTurn: number;
  readonly model: string;
  readonly agentFile: string | null;
}

interface ReplayPlan {
  readonly origin: ReplayedOrigin;
  readonly fromCall: number;
  readonly agent: FoundAgent;
  readonly model: FoundModel;
  readonly requestId: string | undefined;
}

export async function sayReplay(input: ReplayInput, place: UiPlace): Promise<Plan> {
  return { says: describePlan(await planReplay(input, place), place.project), command: '' };
}

export async function replay(input: ReplayInput, place: UiPlace) {
  const plan = await planReplay(input, place);
  // Nobody reads a replay whose page was closed; and once it has ended, its engine is free.
  const ending = new AbortController();
  const signal = AbortSignal.any([place.signal, place.gone, ending.signal]);
  const playing = { env: place.env, store: await place.store(), engines: await place.engines(), signal };
  const id = await replayOnce(plan, playing).finally(() => ending.abort());
  return { of: plan.origin.id, replay: id, made: { run: input.run, attempt: `replay.${id}` } };
}

async function planReplay(
  input: ReplayInput,
  { project, env, store: open, isNamed, requestId }: UiPlace,
): Promise<ReplayPlan> {
  const store = await open();
  const origin = await findReplayed(store, input.run, input.attempt);
  const fromCall = firstNewCall(origin, input.fromTurn);
  const found = await findModel(store, input.model, env);
  const agent = await findAgentOf(origin.file, project, input.agentFile);
  if (agent.agent.roles !== undefined)
    throw badConfig(
      `a replay needs an agent that one policy plays, but ${agent.agent.name} has roles; play it with temper try`,
    );
  return { origin, fromCall, agent, model: found, requestId: isNamed ? requestId : undefined };
}

function describePlan({ origin, fromCall, agent, model }: ReplayPlan, project: string): string {
  const { calls } = origin.record;
  const anew = calls.slice(fromCall);
  const kept = describeKept(fromCall, calls.length);
  const prompt = sum(anew, ({ promptTokenIds }) => promptTokenIds.length);
  const sampled = sum(anew, ({ tokenIds }) => tokenIds.length);
  const file = shortPath(agent.path, project);
  const changed = agent.isUnchanged ? '' : ', which has changed since the run was started';
  return [
    `${kept}; from turn ${fromCall + 1} on, ${model.title} answers.`,
    `In the recorded attempt these were ${plural(anew.length, 'call')} with ${plural(prompt, 'prompt token')} and ${plural(sampled, 'sampled token')}; expect about as many.`,
    `The agent's code (${file}${changed}) runs again from its beginning, with its tools and side effects.`,
    'The result is a new attempt beside the recorded one. It is never trained, no judge rewards it, and no metric counts it.',
  ].join(' ');
}

function describeKept(fromCall: number, calls: number): string {
  if (fromCall === 0) return 'No recorded answer is used';
  if (fromCall === 1) return `Turn 1 of ${calls} gets its recorded answer`;
  return `Turns 1 to ${fromCall} of ${calls} get their recorded answers`;
}

interface Playing {
  readonly env: NodeJS.ProcessEnv;
  readonly store: Store;
  readonly engines: Engines;
  readonly signal: AbortSignal;
}

/** Not played again: what a checkpoint answered before, as it answers the same each time; and the same request. */
async function replayOnce(plan: ReplayPlan, playing: Playing): Promise<string> {
  const made = newReplay(plan);
  const { store } = playing;
  const isRepeatable = plan.model.kind === 'engine' || plan.requestId !== undefined;
  const before = isRepeatable ? await readReplay(store, plan.origin.file.config.run, replayId(made)) : null;
  if (before !== null) return before.id;
  const record = await playReplay(plan, playing);
  return (await publishReplay(store, plan.origin.file.config.run, { ...made, record }, isRepeatable)).id;
}

async function playReplay(plan: ReplayPlan, { env, store, engines, signal }: Playing): Promise<AttemptRecord> {
  const { origin, fromCall, agent, model } = plan;
  const engine = new ReplayEngine(origin.record.calls, fromCall, await openAnswers(plan, engines, signal));
  const resources = openAgentResources(agent.agent, store);
  const { scenario, scenarioIndex, rollout, seed, record } = origin;
  const { branch, step } = origin.place;
  try {
    const played = await playSingle({
      agent: agent.agent,
      engine,
      resources,
      planned: { attempt: record.attempt, scenarioIndex, scenario },
      existing: [journalBefore(record, fromCall)],
      policy: policyOf(model),
      // Keys of requests are those of training; what an evaluation may ask goes through.
      mode: 'eval',
      acceptsAnyModel: true,
      rollout,
      place: { branch, step, seed },
      signal,
      onRecorder: (recorder) => engine.attach(recorder),
      connectHosted: connectByKeys(env),
    });
    if (engine.difference !== null) throw differs(plan, engine.difference, played.record);
    // Numbers of turns from two attempts tell no order: calls stay as they were asked.
    return { ...played.record, calls: played.asked.map(({ turn: _turn, ...call }) => call) };
  } finally {
    await resources?.close();
    await engine.close();
  }
}

function policyOf(model: FoundModel): { model: string; adapterSha256: string | null } {
  if (model.kind === 'hosted') return { model: model.hosted.model, adapterSha256: null };
  return { model: model.model, adapterSha256: model.adapterSha256 };
}

async function openAnswers({ model, origin }: ReplayPlan, engines: Engines, signal: AbortSignal): Promise<NewAnswers> {
  if (model.kind === 'hosted') return answersOfHosted(model.hosted, origin.rollout.temperature);
  return answersOfEngine(await engines.open(model, () => undefined, signal), model);
}

function newReplay({ origin, fromCall, model, requestId }: ReplayPlan): Omit<NewReplay, 'record'> {
  const { id: attempt, place, group, rolloutsSha256, scenario, scenarioIndex } = origin;
  const { adapterSha256 } = policyOf(model);
  const planned = { attempt, rolloutsSha256, fromCall, model: model.kind === 'hosted' ? model.title : model.model };
  const { branch, step } = place;
  const header = {
    branch,
    step,
    ...(group !== undefined && { group }),
    scenarioId: scenario.id,
    scenario: scenarioIndex,
    adapterSha256,
    replay: planned,
  };
  const asked = model.kind === 'hosted' && requestId !== undefined ? { requestId } : {};
  return { inputsSha256: hashOf({ ...planned, adapterSha256, ...asked }), header };
}

function differs({ agent, origin }: ReplayPlan, difference: string, { failure }: AttemptRecord): TemperError {
  const changed = agent.isUnchanged ? '' : `, or undo the changes of ${agent.path} since the run was started`;
  const reason = failure === null ? '' : ` (the agent failed: ${failure.message})`;
  return new TemperError(
    'AgentFailed',
    `the agent must ask for the recorded answers again to be played from a turn on, but in ${origin.id} ${difference}${reason}; choose an earlier turn${changed}`,
  );
}

/** Relative, if it is in the project. */
function shortPath(file: string, project: string): string {
  const path = relative(project, file);
  return path === '' || path.startsWith('..') ? file : path;
}

function sum(calls: readonly CallRecord[], of: (call: CallRecord) => number): number {
  return calls.reduce((total, call) => total + of(call), 0);
}
