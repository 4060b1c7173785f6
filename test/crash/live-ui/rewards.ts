/** A run with external rewards: its page says what it waits for, and they are given while the TypeScript worker is killed. */
import { readVerdict } from '../../../store/records/groups/group-files.ts';
import { awaitedAttempts, writeGivenAgent } from '../given-agent.ts';
import { until } from '../../until.ts';
import { WITHIN_MS, type Trial } from './trial.ts';
import { same } from './views.ts';

const RUN = 'given';
const GROUPS = 2;
const SIZE = 3;

export async function giveRewards(trial: Trial): Promise<void> {
  const { page, project, store } = trial;
  const agent = writeGivenAgent(project.folder);
  const running = trial.train(
    RUN,
    agent,
    `--steps 1 --groups-per-step ${GROUPS} --group-size ${SIZE} --replacement-rounds 0`,
  );
  const awaited = (): Promise<string[]> => awaitedAttempts(store, RUN);
  const ended = running.ended.then(({ output }) => {
    throw new Error(`the run ended before its rewards: ${output.slice(-300)}`);
  });
  const waiting = until('all attempts wait', async () => (await awaited()).length === GROUPS * SIZE, WITHIN_MS, 200);
  await Promise.race([waiting, ended]);
  await trial.goTo(`/runs/${RUN}`);
  await page.getByText('give them in temper review').waitFor();
  const given = new Map<string, number>();
  for (const [at, id] of (await awaited()).entries()) {
    if (at === 1) process.kill(project.pid('worker-given'), 'SIGKILL');
    await project.done('rewards', 'give', RUN, id, String(at / 4));
    given.set(id, at / 4);
  }
  const { code, output } = await running.ended;
  same(`the run (${output.slice(-300)})`, code, 0);
  for (let group = 0; group < GROUPS; group++) {
    const verdict = await readVerdict(store, { run: RUN, branch: 0, step: 1, group });
    const expected = Array.from({ length: SIZE }, (_, attempt) => given.get(`0.1.${group}.${attempt}`));
    same(`rewards of group ${group}`, verdict!.judged.rewards, expected);
  }
  trial.say(`${given.size} rewards were given, and are those of the verdicts`);
}
