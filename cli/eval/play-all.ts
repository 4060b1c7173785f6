/** The models of an evaluation, one after the other; the local stack is started where one of them needs it. */
import { TemperError } from '../../core/failures.ts';
import type { EngineAddress } from '../../play/connections/engine-connection.ts';
import type { CommandEnvironment } from '../command-line/command.ts';
import type { PlannedEval } from './read-planned-eval.ts';
import { withEngine } from './with-engine.ts';
import { playScenarios } from './play.ts';
import type { Player } from './players.ts';
import type { Outcome } from './summarise.ts';

/** In the order of the players. */
export function playAll(plan: PlannedEval, context: CommandEnvironment): Promise<Outcome[]> {
  return withEngine(plan, context, (engine) => playEach(plan, engine, context));
}

/** One after the other: models of one engine would only take each other's time, and their latencies are compared. */
async function playEach(
  plan: PlannedEval,
  engine: EngineAddress | null,
  context: CommandEnvironment,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const player of plan.players) outcomes.push(await play(plan, player, engine, context));
  return outcomes;
}

/** What the others have cost is not lost because one cannot be played. */
async function play(
  plan: PlannedEval,
  player: Player,
  engine: EngineAddress | null,
  { signal, output }: CommandEnvironment,
): Promise<Outcome> {
  const model = player.name;
  const onProgress = (done: number, of: number, waitingFor: string | null) => {
    const waiting = waitingFor === null ? '' : `, waiting for the engine: ${waitingFor}`;
    output.errorLine(`${model}: played ${done} of ${of}${waiting}`);
  };
  try {
    return { model, played: await playScenarios({ plan, player, engine, signal, onProgress }), error: null };
  } catch (error) {
    if (!(error instanceof TemperError) || signal.aborted || plan.players.length === 1) throw error;
    return { model, played: null, error: error.message };
  }
}
