/**
 * Proofs of `temper deploy --to server` against llama.cpp's own server (a wheel, in the cache): with the files that `temper
 * export` writes, and with wrong ones. Run it with
 * `node --import ./workers/typescript.js test/llama-server/run.ts [PROJECT RUN@STEP [KIND…]]`; without a trained project it
 * trains one on the pocket model. It takes minutes and is no part of CI.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { writeKnownModels } from '../../workers/base-models/known-models.ts';
import { loadConfig } from '../../workers/config/config.ts';
import { runCommand } from '../../workers/process/command.ts';
import { Project, ticTacToe } from '../stack.ts';
import { until } from '../until.ts';
import { installPackages } from '../run/packages.ts';
import { openTestPython } from '../run/tools.ts';

const HERE = import.meta.dirname;
const GPU_WORKER = join(HERE, '..', '..', 'gpu-worker');
const NAME = 'proven';
/** The proof's verdict on each kind of file. */
const VERDICTS: Readonly<Record<string, string>> = {
  float16: 'matches',
  q8_0: 'matches',
  zeroed: 'adapter-absent',
  'half-scale': 'wrong-scale',
  'without-alpha': 'wrong-scale',
  'without-mlp': 'missing-target-module',
  'without-q-proj': 'missing-target-module',
  'other-base': 'wrong-base-model',
};
/** Those that `temper export` writes. */
const EXPORTED: Readonly<Record<string, readonly string[]>> = {
  float16: ['--dtype', 'float16'],
  q8_0: ['--quantize', 'q8_0'],
};
/** Learns enough in two steps that modules and scales can be told apart. */
const TRAIN =
  '--base-model pocket --steps 2 --groups-per-step 4 --group-size 8 --learning-rate 1e-3 --eval-scenarios 16';

const [trained, checkpoint = `${NAME}@2`, ...kinds] = process.argv.slice(2);
const project = new Project(trained === undefined ? {} : { folder: trained });
const folder = mkdtempSync(join(tmpdir(), 'temper-gguf-'));
const python = await openTestPython();
const packages = await installPackages(python, {
  cache: 'llama-server',
  lock: join(HERE, 'requirements.lock'),
  what: 'installing llama.cpp’s server',
});
const env = { ...process.env, PYTHONPATH: [GPU_WORKER, packages].join(delimiter) };

async function temper(...args: string[]): Promise<void> {
  const { code, output } = await project.run(...args);
  if (code !== 0) throw new Error(`temper ${args[0]} ended with ${code}:\n${output}`);
}

async function writeFile(kind: string): Promise<string> {
  const flags = EXPORTED[kind];
  if (flags === undefined) return writeWrong(kind);
  const to = join(folder, kind);
  mkdirSync(to);
  await temper('export', checkpoint, '--to', to, '--format', 'gguf', ...flags);
  return join(to, 'model.gguf');
}

async function writeWrong(kind: string): Promise<string> {
  const models = writeKnownModels(project.folder, await loadConfig(project.folder, process.env));
  const args = [join(HERE, 'write_wrong.py'), `file://${project.path('store')}`, checkpoint, folder, models, kind];
  const { code, output } = await runCommand(python, args, { env });
  if (code !== 0) throw new Error(`write_wrong.py ended with ${code}:\n${output}`);
  return join(folder, `${kind}.gguf`);
}

/** Whether a deployment to a server with this file gets the verdict that it must. */
async function prove(kind: string): Promise<boolean> {
  const [wanted, file] = [VERDICTS[kind], await writeFile(kind)];
  const server = spawn(python, [join(HERE, 'serve.py'), file, kind], { env, stdio: ['pipe', 'pipe', 'ignore'] });
  const [url] = (await once(createInterface(server.stdout), 'line')) as [string];
  const { output } = await project.run('deploy', checkpoint, '--to', 'server', '--url', url, '--wait');
  server.stdin.end();
  await once(server, 'exit');
  const [, passed, failed] = /^proof +(\S+):|\((\S+)\): it answers/m.exec(output) ?? [];
  const verdict = passed ?? failed ?? 'none';
  console.log(`${verdict === wanted ? 'ok' : 'NOT OK'}  ${kind}: ${output.trim().split('\n').at(-1)}`);
  return verdict === wanted;
}

if (trained === undefined) await temper('train', ticTacToe(), '--run', NAME, ...TRAIN.split(' '));
const stack = project.start('dev');
const results: boolean[] = [];
try {
  await until('the stack runs', () => project.alive().some((name) => name === 'worker'));
  for (const kind of kinds.length === 0 ? Object.keys(VERDICTS) : kinds) results.push(await prove(kind));
} finally {
  stack.child.kill('SIGINT');
  await stack.ended;
  rmSync(folder, { recursive: true });
}
if (trained === undefined) await project.close();
process.exit(results.every(Boolean) ? 0 : 1);
