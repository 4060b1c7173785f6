/**
 * `npm run test:vllm-api`: vLLM's own tests of its OpenAI server, against the GPU worker's server and, those of responses,
 * against `temper serve`. They are taken from vLLM's source archive, by hash, into the cache; `table.json` says which
 * apply. What follows `--` goes to pytest.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { readPytestReport, type Counts } from '../run/reports.ts';
import { openTestPython } from '../run/tools.ts';
import { fetchTests, installTestPackages } from './install.ts';
import { FILES, NOT_APPLICABLE } from './table.ts';

const HERE = import.meta.dirname;
const NONE: Counts = { passed: 0, failed: 0, skipped: 0 };

const python = await openTestPython();
const source = await fetchTests();
const packages = await installTestPackages(python);
const results = mkdtempSync(join(tmpdir(), 'temper-vllm-api-'));
const report = join(results, 'report.xml');
const files = FILES.map((file) => join('tests', 'entrypoints', file));
const options = ['-q', '-o', 'asyncio_default_fixture_loop_scope=function', `--junitxml=${report}`];
const pytest = ['-m', 'pytest', '-p', 'plugin', '-p', 'no:cacheprovider', ...options];
const child = spawn(python, [...pytest, ...process.argv.slice(2), ...files], {
  cwd: source,
  env: { ...process.env, PYTHONPATH: [HERE, packages].join(delimiter), PYTHONDONTWRITEBYTECODE: '1' },
  stdio: ['ignore', 'inherit', 'inherit'],
});
const [code] = (await once(child, 'exit')) as [number | null];
// It writes none where it was not started as it must be, and has said so.
const { passed, failed, skipped } = existsSync(report) ? readPytestReport(report) : NONE;
rmSync(results, { recursive: true });
const others = [...NOT_APPLICABLE.values()].reduce((sum, count) => sum + count, 0);
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped, ${others} not applicable`);
process.exit(code === 0 && passed > 0 && skipped === 0 ? 0 : 1);
