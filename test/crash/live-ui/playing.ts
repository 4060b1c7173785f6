/** Evaluations, replays, chats and commands of a live run's checkpoints, by the pages. */
import { rolloutsKey } from '../../../store/layout.ts';
import { listGroups, readRollouts, readVerdict } from '../../../store/records/groups/group-files.ts';
import { readSteps } from '../../../store/records/runs/run-reader.ts';
import type { AttemptsView, AttemptView, StepView } from '../../../views/api/attempt-views.ts';
import { until } from '../../until.ts';
import type { Trial } from './trial.ts';
import { has, same } from './views.ts';

const ANSWERS_WITHIN_MS = 600_000;

export async function evaluateBy(trial: Trial, run: string, step: number): Promise<void> {
  await trial.goTo(`/runs/${run}`);
  has('evaluation', await trial.act('Evaluate', { Step: String(step) }), [`${run}@${step}`, 'page: ']);
  await trial.closeDialog();
}

/** The replay is beside the recorded attempt, which stays as it is. */
export async function replayBy(trial: Trial, run: string, step: number, model: string): Promise<void> {
  const { branch } = await trial.ask<StepView>(`runs/${run}/steps/${step}`);
  const id = `${branch}.${step}.0.1`;
  const key = rolloutsKey({ run, branch, step, group: 0 });
  const before = await readRollouts(trial.store, key);
  await trial.goTo(`/runs/${run}/attempts/${id}`);
  await trial.page.getByRole('button', { name: 'Replay from here' }).nth(1).click();
  await trial.confirm('Replay', { Model: model });
  await trial.page.getByRole('link', { name: 'Open the replay' }).click();
  await trial.page.getByText(`A replay of ${id}`).waitFor();
  const { replays } = await trial.ask<AttemptView>(`runs/${run}/attempts/${id}`);
  same('replays', [replays?.length, replays?.[0]?.fromTurn, replays?.[0]?.model], [1, 1, model]);
  same('the recorded attempt', (await readRollouts(trial.store, key))!.sha256, before!.sha256);
}

/** With one model, then with two side by side. */
export async function chatBy(trial: Trial, run: string, left: string, right: string): Promise<void> {
  const { page } = trial;
  await trial.goTo(`/runs/${run}/chat?left=${left}`);
  await page.getByLabel('Token limit').fill('8');
  const ends = page.getByText(/ended by (stop|length), \d+ tokens?/);
  for (const [models, answers] of [[1, 1] as const, [2, 3] as const]) {
    if (models === 2) {
      await page.getByRole('button', { name: 'Add a second model' }).click();
      await page
        .getByRole('textbox', { name: 'Second model' })
        .or(page.getByLabel('Second model').locator('input'))
        .first()
        .fill(right);
      await page.keyboard.press('Enter');
    }
    await page.getByLabel('Message').fill('Your move: X . . / . O . / . . .');
    await page.getByRole('button', { name: 'Send' }).click();
    await until(`${answers} answers came`, async () => (await ends.count()) === answers, ANSWERS_WITHIN_MS, 200);
    trial.say(
      `chat with ${models === 1 ? left : `${left} and ${right}`}: ${(await ends.allTextContents()).join('; ')}`,
    );
  }
}

/** The commands that the page of a checkpoint shows do what they say. */
export async function useCheckpoint(trial: Trial, run: string, step: number): Promise<void> {
  const name = `${run}@${step}`;
  await trial.goTo(`/runs/${run}/checkpoints?at=${name}`);
  const commands = await trial.page.locator('.commands code').allTextContents();
  const [summary] = (await readSteps(trial.store, run)).filter((each) => each.step === step);
  has(`checkpoint ${name}`, await trial.page.locator('section.opened').textContent(), [
    summary!.adapterSha256.slice(0, 16),
    `temper export ${name} --to`,
    `temper serve ${name}`,
  ]);
  const wordsOf = (verb: string): string[] =>
    commands
      .find((command) => command.startsWith(`temper ${verb} `))!
      .split(' ')
      .slice(1);
  const exported = await trial.project.run(...wordsOf('export'));
  same(`export (${exported.output.slice(-300)})`, exported.code, 0);
  const serving = trial.project.start(...wordsOf('serve'), '--port', '0');
  const stopped = serving.ended.then(({ output }) => {
    throw new Error(`temper serve ended: ${output.slice(-300)}`);
  });
  const answers = until('it serves', () => serving.output().includes('http://'), ANSWERS_WITHIN_MS, 200);
  await Promise.race([answers, stopped]);
  serving.child.kill('SIGINT');
  same('serve', (await serving.ended).code, 0);
  trial.say(`${name}: export and serve, as its page shows them, work`);
}

/** Totals of searches are those of the verdicts. */
export async function searchBy(trial: Trial, run: string, steps: readonly number[]): Promise<void> {
  let wins = 0;
  for (const step of steps) {
    const { branch } = await trial.ask<StepView>(`runs/${run}/steps/${step}`);
    for (const group of await listGroups(trial.store, { run, branch, step })) {
      const verdict = await readVerdict(trial.store, { run, branch, step, group });
      wins += verdict!.judged.rewards.filter((reward) => reward !== null && reward >= 1).length;
    }
  }
  const [from, to] = [steps[0]!, steps.at(-1)!];
  const query = `minReward=1&kind=train&fromStep=${from}&toStep=${to}`;
  await until(
    'the index has all',
    async () => (await search(trial, run, query)).index.isComplete,
    ANSWERS_WITHIN_MS,
    200,
  );
  const found = await search(trial, run, query);
  // A branch that was left has attempts of its own.
  const left = found.rows.filter(({ branch }) => branch === 0).length;
  trial.say(`search ${query}: ${found.total} (${left} of branch 0), on the newest branches ${wins}`);
  if (found.total < wins) throw new Error(`search finds ${found.total} of ${wins} attempts`);
  await trial.goTo(`/runs/${run}/attempts?${query}`);
  await trial.page
    .getByText(`${found.total.toLocaleString('en')} match`)
    .first()
    .waitFor();
}

const search = (trial: Trial, run: string, query: string): Promise<AttemptsView> =>
  trial.ask(`runs/${run}/attempts?${query}&limit=500`);

export async function compareBy(trial: Trial, runs: readonly string[]): Promise<void> {
  await trial.goTo(`/compare?runs=${runs.join(',')}`);
  const { curves } = await trial.ask<{ curves: { run: string; steps: object[] }[] }>(`compare?runs=${runs.join(',')}`);
  for (const { run, steps } of curves) same(`curve of ${run}`, steps, await readSteps(trial.store, run));
  for (const run of runs) await trial.page.getByRole('main').getByText(run, { exact: true }).first().waitFor();
}

export async function timelineBy(trial: Trial, run: string, steps: number): Promise<void> {
  await trial.goTo(`/runs/${run}?tab=timeline&from=1&to=${steps}`);
  await trial.page.locator('main .span').first().waitFor();
}
