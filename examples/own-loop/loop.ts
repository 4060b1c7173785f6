/**
 * Tic-tac-toe with a training loop of its own: `node --import temper-rl/typescript examples/own-loop/loop.ts`. If it is killed,
 * the same line continues.
 */
import { parseArgs } from 'node:util';
import { gatherTrajectoryGroups, iterateDataset, TrainableModel, TrajectoryGroup } from 'temper-rl';
import { LocalBackend } from 'temper-rl/local';
import { games, MAX_TOKENS, type Game } from './game.ts';
import { playTrajectory } from './play-trajectory.ts';

const { values: flags } = parseArgs({
  options: {
    steps: { type: 'string', default: '40' },
    groups: { type: 'string', default: '8' },
    attempts: { type: 'string', default: '12' },
    'eval-every': { type: 'string', default: '20' },
    'eval-games': { type: 'string', default: '200' },
    name: { type: 'string', default: 'own' },
  },
});
const [steps, groupsPerStep, attempts] = [Number(flags.steps), Number(flags.groups), Number(flags.attempts)];
const [evalEvery, evalGames] = [Number(flags['eval-every']), Number(flags['eval-games'])];

const backend = new LocalBackend();
const model = new TrainableModel({
  name: flags.name,
  project: 'tic-tac-toe',
  baseModel: 'pocket',
  rollout: { maxTokens: MAX_TOKENS },
});

try {
  await model.register(backend);
  const scenarios = games(0, steps * groupsPerStep);
  for (const { items, step } of iterateDataset(scenarios, { groupsPerStep, initialStep: await model.getStep() })) {
    if (step % evalEvery === 0) await evaluate(step);
    const groups = await gatherTrajectoryGroups(
      items.map((game) => group(game, attempts)),
      { model, maxExceptions: 0.1, pbarDesc: `step ${step + 1}` },
    );
    // A linear schedule is a line of the script's own.
    const { inferenceName, metrics } = await model.train(groups, { learningRate: 4e-3 * (1 - step / steps) });
    console.log(
      `${inferenceName} · reward ${metrics['rewardMean']?.toFixed(3)} · entropy ${metrics['entropy']?.toFixed(3)}`,
    );
  }
  await evaluate(steps);
} finally {
  await backend.close();
}

async function evaluate(step: number): Promise<void> {
  const held = games(1_000_000, evalGames).map((game) => group(game, 1));
  const groups = await gatherTrajectoryGroups(held, { model, split: 'val', pbarDesc: `eval ${step}` });
  await model.log(groups);
  const won = groups.flatMap(({ trajectories }) => trajectories).filter(({ metrics }) => metrics['win'] === true);
  console.log(`after step ${step}: ${won.length} of ${evalGames} held-out games won`);
}

function group(game: Game, size: number): TrajectoryGroup {
  const play = () => playTrajectory(model, game);
  return new TrajectoryGroup(
    Array.from({ length: size }, () => play),
    { metadata: { scenarioId: game.id } },
  );
}
