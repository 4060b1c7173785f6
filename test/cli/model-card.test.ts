import { describe, expect, test } from 'vitest';
import { readLineage } from '../../operations/model-card/card-facts.ts';
import { escapeMarkdown, renderModelCard, type CardFacts } from '../../operations/model-card/model-card.ts';
import { encodeJson } from '../../store/bytes/json.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { runKey } from '../../store/layout.ts';
import { findCheckpoint } from '../../store/records/runs/find-checkpoint.ts';
import { openBranch } from '../../store/records/runs/lineage.ts';
import { requireRun } from '../../store/records/runs/run-reader.ts';
import { makeBranch, makeRun } from '../store/records/made-run.ts';
import { temporaryFolder } from '../temporary-folder.ts';

describe('the lineage', () => {
  test('follows branches and forks, as far as the store has them', async () => {
    const store = await openStore(temporaryFolder());
    const made = await makeRun(store, { steps: 3 });
    await openBranch(store, 'demo', { requestId: 'back', step: 2 });
    await makeBranch(store, made, 1, 2, 2);
    const branched = await findCheckpoint(store, { run: 'demo', branch: 1, step: 4 });
    expect(await readLineage(store, branched)).toEqual([
      'run demo: a fresh adapter',
      'run demo, branch 0: steps 1 to 2',
      'run demo, branch 1, a branch from step 2 of branch 0: steps 3 to 4',
    ]);
    await makeRun(store, { run: 'child', steps: 1 });
    const child = await findCheckpoint(store, { run: 'child', branch: 0, step: 1 });
    const { file } = await requireRun(store, 'child');
    const forkedFrom = async (manifestSha256: string) => {
      await store.replace(runKey('child'), encodeJson({ ...file, parent: { ...branched, manifestSha256 } }));
      return readLineage(store, child);
    };
    const fork = `run child: a fork of demo~1@4, manifest ${branched.manifestSha256}`;
    const known = await forkedFrom(branched.manifestSha256);
    expect(known.slice(2)).toEqual([expect.stringContaining('branch 1'), fork, 'run child: step 1']);
    // Another run of that name.
    const other = await forkedFrom('0'.repeat(64));
    expect(other).toHaveLength(2);
  });
});

describe('the model card', () => {
  const FACTS: CardFacts = {
    policy: 'demo@2',
    run: 'demo',
    agent: 'toy',
    step: 2,
    steps: 3,
    base: { name: 'mine', sha256: 'b'.repeat(64), hubId: null, revision: null, packageFolder: null, unpackedTo: null },
    chatTemplateSha256: null,
    lora: { rank: 20, alpha: 32 },
    adapterSha256: 'a'.repeat(64),
    manifestSha256: 'c'.repeat(64),
    temperVersion: null,
    metrics: {},
    evaluation: null,
    evalBefore: null,
    lineage: ['run demo: a fresh adapter'],
    format: 'peft',
    merged: null,
  };

  test('leaves out what is unknown', () => {
    const card = renderModelCard(FACTS);
    for (const absent of [
      'hub',
      'revision',
      '| Temper |',
      '## Evaluation',
      '## Metrics',
      'base_model',
      'null',
      'undefined',
    ])
      expect(card).not.toContain(absent);
    expect(card).toContain('base = "PATH_OF_THE_BASE_MODEL"');
  });

  test('names a base model of the hub, and the next rank that vLLM takes', () => {
    const base = { ...FACTS.base, name: 'Qwen/Qwen3-4B', hubId: 'Qwen/Qwen3-4B' };
    const card = renderModelCard({ ...FACTS, base });
    expect(card).toContain('base_model: "Qwen/Qwen3-4B"');
    expect(card).toContain('vllm serve Qwen/Qwen3-4B --enable-lora --max-lora-rank 32 --lora-modules demo@2=.');
  });

  test('says that the base model was in 4 bits, and how it is loaded so', () => {
    const base = { ...FACTS.base, hubId: 'Qwen/Qwen3-4B', unpackedTo: 'bfloat16' };
    const card = renderModelCard({ ...FACTS, base });
    expect(card).toContain('| base model in training | linear layers in 4 bits (NF4, blocks of 64) |');
    expect(card).toContain('from this folder (4 bits also need bitsandbytes)');
    expect(card).toContain(
      'bnb_4bit_quant_type="nf4",\n    bnb_4bit_use_double_quant=False,\n    bnb_4bit_compute_dtype=torch',
    );
    expect(card).toContain('from_pretrained(base, dtype=torch.bfloat16, quantization_config=in_4bit)');
    expect(card).toContain('vLLM does not round the base model to 4 bits as in training, so its answers differ.');
    const merged = { dtype: 'float32', kept: null };
    expect(renderModelCard({ ...FACTS, base, format: 'merged', merged })).toContain('linear layers in 4 bits');
    expect(renderModelCard(FACTS)).not.toMatch(/4 bits|bitsandbytes/i);
  });

  test('shows names of strangers as text', () => {
    const evaluation = {
      step: 2,
      attempts: 4,
      failed: 1,
      reward: 0.5,
      metrics: { '<img src=x>|[a](b)\n# now': 1, 'win_rate\u202e': 0.5 },
      rolloutsSha256: 'd'.repeat(64),
    };
    const card = renderModelCard({ ...FACTS, evaluation, metrics: { '`rm`': 1 } });
    expect(card).toContain(String.raw`| \<img src=x\>\|\[a\](b) \# now | 1.000 |`);
    expect(card).toContain(String.raw`| win\_rate\\u202e | 0.500 |`);
    expect(card).toContain('| \\`rm\\` | 1 |');
    expect(card).toContain('4 held-out scenarios; 1 of them failed.');
    expect(escapeMarkdown('plain name 1.5')).toBe('plain name 1.5');
  });
});
