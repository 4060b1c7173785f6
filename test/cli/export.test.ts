import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { openStore } from '../../store/bytes/open-store.ts';
import { readManifest } from '../../store/records/runs/run-reader.ts';
import type { Store } from '../../store/store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { fakePython } from './fake-python.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, runCli, type CliResult } from './run-cli.ts';

let project: string;
let store: Store;

beforeEach(async () => {
  project = temporaryProject();
  store = await openStore(join(project, '.temper', 'store'));
  await makeRun(store, { steps: 3, evals: { 0: 0.25, 2: 0.75 } });
});

const exporting = (words: string[], env: NodeJS.ProcessEnv = {}): Promise<CliResult> =>
  runCli(project, ['export', ...words], { env });

const read = (...path: string[]) => readFileSync(join(project, ...path), 'utf8');
const visible = () => readdirSync(project).toSorted();

const complaint = (...words: string[]) => complaintIn(project, ['export', ...words]);

describe('an adapter', () => {
  test('is exported byte for byte, with what it is', async () => {
    const { exitCode, stdout, stderr } = await exporting(['demo@2', '--to', 'out']);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toMatch(
      /^demo@2: its adapter \(PEFT\), 3 files, [\d.]+ kB, in out\nhow to load it: out\/README.md$/,
    );
    expect(readdirSync(join(project, 'out')).toSorted()).toEqual([
      'README.md',
      'adapter_config.json',
      'adapter_model.safetensors',
    ]);
    const manifest = (await readManifest(store, { run: 'demo', branch: 0, step: 2 }))!;
    for (const [file, ref] of [
      ['adapter_model.safetensors', manifest.adapter],
      ['adapter_config.json', manifest.adapterConfig],
    ] as const)
      expect(readFileSync(join(project, 'out', file))).toEqual(Buffer.from(await store.getBlob(ref)));
    const card = read('out', 'README.md').replaceAll(/[0-9a-f]{64}/g, 'SHA256');
    for (const part of [
      /^---\nlibrary_name: "peft"\npipeline_tag: "text-generation"\ntags: \["reinforcement-learning","temper-rl","lora"\]\n---\n\n# demo@2\n/,
      /^A LoRA adapter for pocket, trained with reinforcement learning by Temper .* on the agent toy\.$/m,
      /^\| base model, sha256 of its weights \| SHA256 \|\n\| run \| demo \|\n\| step \| 2 of 3 \|$/m,
      /^\| LoRA \| rank 16, alpha 32 \|\n\| adapter, sha256 \| SHA256 \|\n\| manifest, sha256 \| SHA256 \|$/m,
      /^2 held-out scenarios\.\n\n\| metric \| before training \| step 2 \|\n.*\n\| reward \| 0.250 \| 0.750 \|$/m,
      /^## Lineage\n\n1. run demo: a fresh adapter\n2. run demo: steps 1 to 2$/m,
      /^base = "node_modules\/temper-rl\/gpu-worker\/temper_gpu\/pocket\/model"$/m,
      /^vllm serve \S+\/pocket\/model --enable-lora --max-lora-rank 16 --lora-modules demo@2=\.$/m,
      /`temper export demo@2 --to FOLDER --format gguf`/,
    ])
      expect(card).toMatch(part);
  });

  test('comes with the chat template that it was trained with, and how to use it', async () => {
    const template = 'said: {{ messages[0].content }}';
    await makeRun(store, { run: 'spoken', chatTemplate: template });
    const { exitCode, stderr } = await exporting(['spoken@3', '--to', 'out']);
    expect(exitCode, stderr).toBe(0);
    expect(read('out', 'chat_template.jinja')).toBe(template);
    const card = read('out', 'README.md');
    expect(card).toContain('| chat template | chat\\_template.jinja in this folder, which it was trained with instead');
    expect(card).toContain(
      'tokenizer.chat_template = open("chat_template.jinja", encoding="utf-8").read()\nmodel = Peft',
    );
    expect(card).toContain('--lora-modules spoken@3=. --chat-template chat_template.jinja\n');
  });

  test('is told as JSON', async () => {
    const { stdout } = await exporting(['demo@best', '--to', 'out', '--format', 'peft', '--json']);
    const { adapter } = (await readManifest(store, { run: 'demo', branch: 0, step: 2 }))!;
    expect(JSON.parse(stdout)).toMatchObject({
      policy: 'demo@2',
      format: 'peft',
      dtype: null,
      folder: join(project, 'out'),
      files: ['README.md', 'adapter_config.json', 'adapter_model.safetensors'],
      baseModel: 'pocket',
      adapterSha256: adapter.sha256,
    });
  });

  test('goes into an empty folder, and into a new one below a new one', async () => {
    mkdirSync(join(project, 'empty'));
    for (const folder of ['empty', 'a/b']) {
      const { exitCode, stderr } = await exporting(['demo@3', '--to', folder]);
      expect(exitCode, stderr).toBe(0);
      expect(readdirSync(join(project, folder))).toHaveLength(3);
    }
    expect(visible()).toEqual(['.temper', 'a', 'empty', 'package.json']);
  });
});

describe('what cannot be exported', () => {
  test('a folder that has something in it, or a file of that name, stays as it is', async () => {
    mkdirSync(join(project, 'mine'));
    writeFileSync(join(project, 'mine', 'notes.txt'), 'mine');
    expect(await complaint('demo@3', '--to', 'mine')).toContain('--to must be a new or an empty folder');
    expect(await complaint('demo@3', '--to', 'package.json')).toContain(
      'PROJECT/package.json is not; pass another one',
    );
    expect(read('mine', 'notes.txt')).toBe('mine');
  });

  test('flags that are missing, wrong or without effect', async () => {
    expect(await complaint('demo')).toContain('--to is missing; pass a new folder');
    expect(await complaint('demo', '--to', 'x', '--format', 'onnx')).toContain(
      '--format must be one of peft, merged, gguf, mlx',
    );
    expect(await complaint('demo@2', '--to', 'x', '--quantize', 'q8_0')).toContain('without --format gguf');
    const both = ['--format', 'gguf', '--quantize', 'q8_0', '--dtype', 'float16'];
    expect(await complaint('demo@2', '--to', 'x', ...both)).toContain('--quantize and --dtype exclude each other');
    expect(await complaint('demo@2', '--to', 'x', '--dtype', 'float16')).toContain('without --format merged or gguf');
    expect(await complaint('demo@9', '--to', 'x')).toContain('demo@9 is not committed');
  });

  test('pruned weights, with the way back', async () => {
    await runCli(project, ['checkpoints', 'prune', 'demo', '--keep-last', '1']);
    expect(await complaint('demo@1', '--to', 'x')).toContain('but they were pruned on purpose');
  });

  test('damaged weights are no result', async () => {
    const { adapter } = (await readManifest(store, { run: 'demo', branch: 0, step: 3 }))!;
    const file = join(project, '.temper', 'store', adapter.key);
    chmodSync(file, 0o644);
    writeFileSync(file, 'other bytes');
    const { exitCode, stderr } = await exporting(['demo@3', '--to', 'x']);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/must have \d+ bytes with the hash .*; restore it from a copy/);
    expect(visible()).toEqual(['.temper', 'package.json']);
  });

  test.runIf(process.platform === 'linux')('a place that takes no folders', async () => {
    const { exitCode, stderr } = await exporting(['demo@3', '--to', '/sys/out']);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/^temper: the folder \/sys\/out must be writable and have room, but refused \(E/);
  });
});

describe('merged weights', () => {
  /** Python, as far as this command knows it: JavaScript that stands for the program `export`. */
  const pythonThat = (body: string) => fakePython(`const to = input.folder; ${body}`);
  const given = () => JSON.parse(read('out', 'model.safetensors')) as object;
  const MERGED = ['demo@2', '--to', 'out', '--format', 'merged'];
  const WEIGHTS = "fs.writeFileSync(to + '/model.safetensors', JSON.stringify(input), { mode: 0o600 });";

  test('are made by Python, and described', async () => {
    const answer = { revision: 'abc123', kept: 0.9312 };
    const env = pythonThat(`${WEIGHTS} console.log(${JSON.stringify(JSON.stringify(answer))});`);
    const { exitCode, stdout, stderr } = await exporting([...MERGED, '--dtype', 'bfloat16'], env);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toContain('demo@2: merged weights in bfloat16, 2 files');
    const folder = expect.stringMatching(/\.partial$/) as string;
    expect(given()).toMatchObject({ store: store.uri, policy: 'demo@2', folder, format: 'merged', dtype: 'bfloat16' });
    expect(statSync(join(project, 'out', 'model.safetensors')).mode & 0o777).toBe(0o666 & ~process.umask());
    const card = read('out', 'README.md');
    expect(card).toContain('| base model, revision | abc123 |');
    expect(card).toContain('bfloat16; 93.120 % of what the adapter changes is left after rounding');
    expect(card).toContain('AutoModelForCausalLM.from_pretrained(".")');
    expect(card).toContain('temper export demo@2 --to FOLDER --format gguf');
    expect(card).not.toContain('PeftModel');
  });

  test('of a base model in 4 bits are described so; how it was loaded, Python reads in the manifest', async () => {
    await makeRun(store, { run: 'packed', steps: 1, platform: { quantization: 'nf4', dtype: 'bfloat16' } });
    const env = pythonThat(`${WEIGHTS} console.log('{"revision":null,"kept":1}');`);
    const { exitCode, stderr } = await exporting(['packed@1', ...MERGED.slice(1)], env);
    expect(exitCode, stderr).toBe(0);
    expect(given()).toMatchObject({ dtype: 'float32' });
    expect(read('out', 'README.md')).toContain('| base model in training | linear layers in 4 bits');
    await exporting(['packed@1', '--to', 'adapter']);
    expect(read('adapter', 'README.md')).toContain('bnb_4bit_compute_dtype=torch.bfloat16,');
  });

  test('have the chat template of their run', async () => {
    const { config } = await makeRun(store, { run: 'spoken', chatTemplate: '{{ messages[0].content }}' });
    const env = pythonThat(`${WEIGHTS} console.log('{"revision":null,"kept":1}');`);
    const { exitCode, stderr } = await exporting(['spoken@3', ...MERGED.slice(1)], env);
    expect(exitCode, stderr).toBe(0);
    const { chatTemplateSha256 } = config.rollout;
    expect(given()).toMatchObject({ chatTemplateSha256 });
    expect(read('out', 'README.md')).toContain(`sha256 ${chatTemplateSha256}`);
  });

  test.each([
    ['gguf', ['--quantize', 'q8_0'], 'merged weights in q8_0 (GGUF)', 'llama-server --model model.gguf --alias demo'],
    ['mlx', [], 'its adapter (MLX)', 'mlx_lm.server --model node_modules/temper-rl/'],
  ])('and %s are made by the same program, with how to load them', async (format, flags, told, card) => {
    const env = pythonThat(`${WEIGHTS} console.log('{"revision":null,"kept":1}');`);
    const { exitCode, stdout, stderr } = await exporting(['demo@2', '--to', 'out', '--format', format, ...flags], env);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toContain(`demo@2: ${told}, 2 files`);
    expect(given()).toMatchObject({ format, ...(flags.length > 0 && { quantize: 'q8_0' }) });
    expect(read('out', 'README.md')).toContain(card);
  });

  test.each([
    [
      'what Python refuses',
      "console.error('BadConfig: the model mine must be registered; name it'); process.exit(2);",
      2,
      'temper: the model mine must be registered; name it',
    ],
    [
      'what Python finds',
      "console.error('PolicyMismatch: only 3 % is left'); process.exit(1);",
      1,
      'temper: only 3 % is left',
    ],
    [
      'a crash of Python',
      "console.error('Segmentation fault'); process.exit(139);",
      1,
      'temper: demo@2 could not be merged: Segmentation fault; run temper doctor',
    ],
  ])('%s is told, and nothing half-written stays', async (_, body, expected, message) => {
    const { exitCode, stderr } = await exporting(MERGED, pythonThat(`${WEIGHTS} ${body}`));
    expect([exitCode, stderr]).toEqual([expected, expect.stringContaining(message)]);
    expect(visible()).toEqual(['.temper', 'package.json']);
  });

  test('a folder that another program filled meanwhile is not touched', async () => {
    const env = pythonThat(
      `fs.mkdirSync(to + '/../out'); fs.writeFileSync(to + '/../out/theirs', ''); console.log('{"revision":null,"kept":1}');`,
    );
    const { exitCode, stderr } = await exporting(MERGED, env);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('an export overwrites nothing')]);
    expect(visible()).toEqual(['.temper', 'out', 'package.json']);
    expect(readdirSync(join(project, 'out'))).toEqual(['theirs']);
  });
});
