/** A run with external rewards: each is given on its page, while the TypeScript worker is killed. */
import { readVerdict } from '../../../store/records/group-files.ts';
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
  await trial.goTo('/');
  await trial.goTo(`/runs/${RUN}/rewards`);
  const given = new Map<string, number>();
  for (const [at, id] of (await awaited()).entries()) {
    const input = page.getByLabel(`Reward of ${id}`);
    await page.getByRole('button', { name: new RegExp(`^${id.replaceAll('.', '\\.')}`) }).click();
    await input.fill(String(at / 4));
    await page.locator('.give-plan p').first().waitFor();
    if (at === 1) process.kill(project.pid('worker-given'), 'SIGKILL');
    await input.press('Enter');
    await until(`${id} is given`, async () => !(await awaited()).includes(id), WITHIN_MS, 100);
    given.set(id, at / 4);
  }
  await page.getByText('Nothing waits for a reward.').waitFor();
  const { code, output } = await running.ended;
  same(`the run (${output.slice(-300)})`, code, 0);
  for (let group = 0; group < GROUPS; group++) {
    const verdict = await readVerdict(store, { run: RUN, branch: 0, step: 1, group });
    const expected = Array.from({ length: SIZE }, (_, attempt) => given.get(`0.1.${group}.${attempt}`));
    same(`rewards of group ${group}`, verdict!.judged.rewards, expected);
  }
  trial.say(`${given.size} rewards were given on the page, and are those of the verdicts`);
}
