/**
 * The crash suite trains this: parallel calls that are the same request, a side effect in between, a call that follows
 * from both. A third of the scenarios is worth the same whatever is played, so that groups are replaced; every second
 * one is played by an agent that answers every error with a reward: an outage must not become data through it.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineAgent, label, type RolloutContext, type RolloutResult } from 'temper-rl';
import { EMPTY_BOARD, parseMove, place, renderBoard } from '../../../examples/tic-tac-toe/game.ts';

interface Scenario {
  readonly id: string;
  readonly isFlat: boolean;
  readonly swallows: boolean;
  readonly isSlow: boolean;
}

/** Long enough for its activity to beat, though the pocket model answers at once. */
const SLOW_MS = 1300;
const SLOW_SCENARIO = 22;

const NO_MOVE = { reward: 0, metrics: { moved: false } };

export default defineAgent<Scenario>({
  name: 'crash',
  scenarios: scenarios('train', 24),
  evalScenarios: scenarios('eval', 4),
  async rollout(context) {
    if (!context.scenario.swallows) return play(context);
    try {
      return await play(context);
    } catch {
      return NO_MOVE;
    }
  },
});

async function play(context: RolloutContext<Scenario>): Promise<RolloutResult> {
  const { scenario, random, once } = context;
  // Its own in each attempt, and the same in each repetition of it.
  const name = random();
  const answers = await Promise.all([ask(context, EMPTY_BOARD, 'left'), ask(context, EMPTY_BOARD, 'right')]);
  const factor = await once('tool', () => useTool(name));
  if (scenario.isSlow) await sleep(SLOW_MS);
  const move = parseMove(answers[0] ?? null, EMPTY_BOARD);
  if (move === null) return { ...NO_MOVE, reward: scenario.isFlat ? 0.5 : 0 };
  const last = await ask(context, place(EMPTY_BOARD, move, 'x'), 'last');
  const sum = [...answers, last].map((answer) => Number(answer ?? 0) || 0).reduce((total, digit) => total + digit, 0);
  return { reward: scenario.isFlat ? 0.5 : (factor * sum) / 27, metrics: { moved: true } };
}

async function ask({ openai, model }: RolloutContext<Scenario>, board: string, name: string): Promise<string | null> {
  const messages = [{ role: 'user' as const, content: renderBoard(board) }];
  const completion = await openai.chat.completions.create({ model, messages, max_tokens: 2 }, label(name));
  return completion.choices[0]?.message.content ?? null;
}

/** A side effect that leaves a line each time it happens. */
function useTool(name: number): number {
  const folder = process.env['TEMPER_CRASH_FOLDER'];
  if (folder !== undefined) {
    appendFileSync(join(folder, 'effects.jsonl'), `${JSON.stringify({ time: Date.now(), value: 1 + name })}\n`);
  }
  return 1 + name;
}

function scenarios(set: string, count: number): Scenario[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${set}-${index}`,
    isFlat: index % 3 === 0,
    swallows: index % 2 === 1,
    isSlow: index === SLOW_SCENARIO,
  }));
}
