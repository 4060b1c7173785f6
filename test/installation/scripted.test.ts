/** All SDKs in an installation that has them: agents of pages, frameworks and clients, typed and played against scripted answers. */
import { writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { inject, test } from 'vitest';
import { ProjectFolder, succeed } from '../stack.ts';
import { installClients } from './installation.ts';

const { folder, env } = inject('installation');
const project = new ProjectFolder(folder, { env });

test('agents of frameworks, pages and examples are typed as their SDKs want it', async () => {
  const compilerOptions = { strict: true, skipLibCheck: true, noEmit: true, target: 'es2023', types: ['node'] };
  const modules = { module: 'nodenext', allowImportingTsExtensions: true };
  const folders = ['frameworks', 'sdks', 'templates', 'scripted', 'examples/email-search/sdks'];
  const include = [...folders, 'play-examples.ts', 'clients.ts'];
  const config = { compilerOptions: { ...compilerOptions, ...modules }, include };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  await succeed(project.run('node', 'node_modules/typescript-7/bin/tsc', '--project', '.'));
});

test('the SDKs do what their pages say, and agents of pages are rewarded for right answers', async () => {
  await succeed(project.run('node', '--import', 'temper-rl/typescript', 'scripted/main.ts'));
});

test('the programs of docs/programs.md run', async () => {
  const python = env['TEMPER_PYTHON']!;
  const PATH = [dirname(python), process.env['PATH']].join(delimiter);
  const variables = { ...env, PATH, PYTHONPATH: await installClients(python) };
  const programs = new ProjectFolder(folder, { env: variables });
  await succeed(programs.run('node', '--import', 'temper-rl/typescript', 'scripted/programs.ts'));
});
