/**
 * A live run in the pages of `temper ui`: actions by their dialogs in a real browser, while workers and the Temporal server
 * are killed underneath, after steps that the seed chooses; what the pages show is compared with the store. Run it with
 * `node --import ./workers/typescript.js test/crash/live-ui/run.ts [SEED [STEPS]]`; it takes minutes. The last line is one
 * JSON object, and the exit code 1 if something is wrong.
 */
import { rmSync } from 'node:fs';
import { useCompiledCode } from '../../compiled.ts';
import { ticTacToe } from '../../stack.ts';
import { until } from '../../until.ts';
import { killAlong } from './kills.ts';
import { chatBy, compareBy, evaluateBy, replayBy, searchBy, timelineBy, useCheckpoint } from './playing.ts';
import { giveRewards } from './rewards.ts';
import { Trial, WITHIN_MS } from './trial.ts';
import { compareRun, compareStep } from './views.ts';

/** Under load, a kill costs a minute; alone, a step takes less than a second. */
const STEPS = Number(process.argv[3] ?? 150);
const seed = Number(process.argv[2] ?? 1);
// Commands that a page shows are run as they are: of a server without a terminal, the key is in the environment.
process.env['TEMPER_SERVE_KEY'] = 'a key of the trial, of at least 24 characters';
const compiled = await useCompiledCode();
const trial = new Trial();
let killed = 0;
try {
  killed = await play();
} finally {
  await trial.close();
  for (const folder of compiled) rmSync(folder, { recursive: true, force: true });
}
if (trial.failures.length > 0) throw new Error(`scripts failed in the page: ${trial.failures.join('\n')}`);
console.log(JSON.stringify({ seed, steps: STEPS, kills: killed, said: trial.said }));

/** How many kills there were. */
async function play(): Promise<number> {
  trial.hold();
  await trial.open();
  const size = '--groups-per-step 4 --group-size 8 --eval-scenarios 8 --learning-rate 4e-3';
  const running = trial.train('live', ticTacToe(), `--steps ${STEPS} --seed ${seed} ${size}`);
  await trial.reach('live', 2);
  await steerBeforeKills();
  const killing = killAlong(trial, 'live', STEPS, seed);
  await compareStep(trial, 'live', 2);
  await steerUnderKills();
  await replayBy(trial, 'live', 3, 'live@4');
  await chatBy(trial, 'live', 'live@4', 'live@2');
  await evaluateBy(trial, 'live', 4);
  await compareStep(trial, 'live', 5);
  await useCheckpoint(trial, 'live', 4);
  const { code } = await running.ended;
  const kills = await killing;
  trial.say(`train ended with ${code}, after ${kills} kills`);
  await compareRun(trial, 'live');
  await compareStep(trial, 'live', STEPS - 1);
  await timelineBy(trial, 'live', STEPS);
  await searchBy(trial, 'live', [1, 2, 3, 4]);
  await compareBy(trial, ['live', 'other']);
  await giveRewards(trial);
  return kills;
}

async function steerBeforeKills(): Promise<void> {
  await trial.goTo('/runs/live');
  await trial.act('Pause', { Reason: 'to look' });
  await trial.closeDialog();
  await trial.becomes('live', 'paused');
  await compareRun(trial, 'live');
  await trial.goTo('/runs/live');
  await trial.act('Change settings', { Settings: 'learningRate=2e-3' });
  await trial.closeDialog();
  await trial.act('Resume');
  await trial.closeDialog();
}

async function steerUnderKills(): Promise<void> {
  await trial.goTo('/runs/live');
  await trial.act('Roll back', { Step: '5' });
  await trial.closeDialog();
  await until('branch 1 is there', async () => (await trial.stateOf('live'))?.branch === 1, WITHIN_MS, 100);
  await trial.act('Fork', { Step: '5', Name: 'other' });
  await trial.closeDialog();
  await trial.reach('other', 6);
  await trial.goTo('/runs/other');
  await trial.act('Stop', { Reason: 'seen enough' });
  await trial.closeDialog();
  await trial.becomes('other', 'stopped');
}
