/** Stores of others and static sites. */
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { AttemptsView, GroupView } from '../../../views/api/attempt-views.ts';
import type { ServerInfo } from '../../../views/api/requests.ts';
import { SiteWriter } from '../../../cli/pages/site-writer.ts';
import { complaintIn, runCli } from '../run-cli.ts';
import { temporaryProject, writeFixtureRun } from '../fixture-store.ts';
import { serveUi, WITH_KEY } from './served-ui.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const HOSTILE = '</script><script>globalThis.hacked = 1</script>\u2028<!--<img src=x onerror=alert(1)>';

async function copiedStore(): Promise<string> {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 2 });
  const folder = temporaryFolder();
  await cp(join(project, '.temper', 'store'), join(folder, 'copy'), { recursive: true });
  return folder;
}

test('a copied store is served without a project, under a name of its own', async () => {
  const folder = await copiedStore();
  const before = await readdir(join(folder, 'copy'), { recursive: true });
  const ui = await serveUi(folder, {
    args: ['--store', 'copy', '--host', '127.0.0.1', '--allow-host', 'temper.internal', '--json'],
  });
  expect(JSON.parse(ui.lines.join('\n'))).toEqual({
    url: ui.origin,
    keyVariable: 'TEMPER_UI_KEY',
    store: `file://${folder}/copy`,
  });
  const { status, text } = await ui.ask('GET', '/api/runs', { headers: { ...WITH_KEY, host: 'temper.internal' } });
  expect([status, (JSON.parse(text) as { run: string }[]).map(({ run }) => run)]).toEqual([200, ['demo']]);
  let found = await ui.view<AttemptsView>('runs/demo/attempts?limit=1');
  while (!found.index.isComplete) found = await ui.view<AttemptsView>('runs/demo/attempts?limit=1');
  expect(found.rows).toHaveLength(1);
  // It only reads: the index is in the cache.
  expect(await readdir(join(folder, 'copy'), { recursive: true })).toEqual(before);
});

/** Answers of a site, read as a page reads them. */
async function readSite(folder: string) {
  const page = { temperExport: undefined as unknown as { answers: Record<string, unknown>; places: object } };
  const context = Object.assign(page, { globalThis: page, Object });
  const run = async (name: string) => runInNewContext(await readFile(join(folder, 'data', name), 'utf8'), context);
  await run('manifest.js');
  for (const name of await readdir(join(folder, 'data'))) if (name !== 'manifest.js') await run(name);
  return page.temperExport;
}

test('an export has the chosen runs, and says what it leaves out', async () => {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 7 });
  await writeFixtureRun(project, { run: 'other', steps: 1 });
  const env = { TEMPER_CACHE: join(project, 'cache') };
  const { exitCode, stdout } = await runCli(project, ['ui', '--export', 'site', '--run', 'demo'], { env });
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^1 run exported to site, .*\nattempts of some steps only, demo: 42 of 56 groups/);
  const { answers, places } = await readSite(join(project, 'site'));
  expect(Object.keys(answers).toSorted()).toEqual(Object.keys(places).toSorted());
  expect((answers['runs'] as { run: string }[]).map(({ run }) => run)).toEqual(['demo']);
  expect(answers['info']).toMatchObject({
    isExport: true,
    isReadOnly: true,
    store: 'store',
  } satisfies Partial<ServerInfo>);
  expect(JSON.stringify(answers)).not.toContain(project);
  expect(Object.keys(answers)).toEqual(
    expect.arrayContaining(['runs/demo', 'runs/demo/curve', 'runs/demo/steps/7?branch=0', 'runs/demo/groups/0.7.0']),
  );
  // Written again, it replaces the earlier one; other files are not touched.
  expect((await runCli(project, ['ui', '--export', 'site', '--run', 'other'], { env })).exitCode).toBe(0);
  expect(await complaintIn(project, ['ui', '--export', '.'], { env })).toMatch(/must name a new or empty folder/);
  expect(await complaintIn(project, ['ui', '--export', 'x', '--run', 'nobody'], { env })).toMatch(
    /demo, other.*got nobody/,
  );
});

test('an export has no page that opens until its end, also where it replaces another one', async () => {
  const folder = temporaryFolder();
  const begun = async (): Promise<SiteWriter> => {
    const writer = new SiteWriter(folder);
    await writer.begin({ js: '', css: '' });
    await writer.add('runs', []);
    return writer;
  };
  const first = await begun();
  expect((await readdir(folder)).toSorted()).toEqual(['data', 'page.css', 'page.js']);
  await first.end();
  expect(await readdir(folder)).toContain('index.html');
  await begun();
  expect(await readdir(folder)).not.toContain('index.html');
  // An interrupted export is known by its manifest, so that the next one may replace it.
  expect(await readdir(join(folder, 'data'))).toContain('manifest.js');
});

test('what a model wrote is data in the scripts of an export', async () => {
  const project = temporaryProject();
  await writeFixtureRun(project, { steps: 1, answer: HOSTILE });
  const env = { TEMPER_CACHE: join(project, 'cache') };
  expect((await runCli(project, ['ui', '--export', 'site'], { env })).exitCode).toBe(0);
  for (const name of await readdir(join(project, 'site', 'data'))) {
    const text = await readFile(join(project, 'site', 'data', name), 'utf8');
    expect([name, text.includes('<'), text.includes('\u2028')]).toEqual([name, false, false]);
  }
  const { answers } = await readSite(join(project, 'site'));
  const group = answers['runs/demo/groups/0.1.0'] as GroupView;
  expect(JSON.stringify(group)).toContain(JSON.stringify(HOSTILE).slice(1, -1));
  expect('hacked' in globalThis).toBe(false);
});
