/** Proofs of deployments: which prompts are sent, what is asked, and what measurements say. The measuring itself is Python's. */
import { describe, expect, onTestFinished, test } from 'vitest';

import { judgeProof, type MeasuredAnswers } from '../../../outbound/deploy/proof-verdict.ts';
import { proveAnswers, type MeasureRequest } from '../../../outbound/deploy/proof.ts';
import { chooseRecordedPrompts } from '../../../outbound/deploy/recorded-prompts.ts';
import type { ProofRequest } from '../../../outbound/deploy/targets/target.ts';
import { findTrainedPolicy } from '../../../store/records/runs/find-policy.ts';
import { readEvalRollouts } from '../../../store/records/runs/run-reader.ts';
import type { Store } from '../../../store/store.ts';
import { makeRun } from '../../store/records/made-run.ts';
import { startStandIn, type StandIn, type StandInAnswer } from '../stand-in.ts';
import { temporaryStore } from '../../temporary-folder.ts';
import { addDeployment } from './made-deployment.ts';

const measure = (kind: string, distance: number, lead = 0, of: string | number | null = null) => ({
  kind,
  of,
  distance,
  regret: distance / 10,
  lead,
});
const measured = (...measures: MeasuredAnswers['measures']): MeasuredAnswers => ({
  tokens: 256,
  scored: 256,
  sameTexts: 8,
  share: 1,
  measures,
});
const answer = (promptTokens: number | null = 3) => ({
  promptTokenIds: [1, 2, 3],
  text: '7',
  scores: null,
  hasEnded: true,
  promptTokens,
});

describe('measurements', () => {
  const own = measure('checkpoint', 0.3);
  const base = measure('base', 0.31, -30);

  test.each([
    ['the checkpoint', [measure('checkpoint', 0.001), base], 'matches', 'it answers as the checkpoint does ('],
    ['no adapter', [own, measure('base', 0.001, 40)], 'adapter-absent', 'as the base model does, without the adapter'],
    [
      'half of it',
      [own, base, measure('scale', 0.01, 20, 0.5)],
      'wrong-scale',
      "as the checkpoint would with 0.5 times the adapter's scale",
    ],
    [
      'a part of it',
      [own, base, measure('missing', 0.01, 20, 'down_proj')],
      'missing-target-module',
      'as the checkpoint would without the adapter of down_proj',
    ],
    [
      'another model',
      [measure('checkpoint', 2), measure('base', 1.9, 5), measure('scale', 2.1, -2, 2)],
      'wrong-base-model',
      'another base model, or other weights',
    ],
  ])('that are nearest to %s say so', (_, measures, verdict, detail) => {
    const proof = judgeProof(measured(...measures), [answer()]);
    expect(proof.verdict).toBe(verdict);
    expect(proof.detail).toContain(detail);
  });

  test('another explanation that is ahead by chance alone does not fail a proof', () => {
    const found = judgeProof(measured(measure('checkpoint', 0.02), base, measure('missing', 0.019, 1.5, 'k_proj')), []);
    expect(found).toMatchObject({ verdict: 'matches', measured: { error: 0.02, lead: 1.5, share: 1 } });
  });

  test('another explanation that is ahead by more than chance is found, however near the checkpoint is', () => {
    const found = (lead: number) => judgeProof(measured(measure('checkpoint', 0.15), measure('base', 0.1, lead)), []);
    expect([found(3), found(5)].map(({ verdict }) => verdict)).toEqual(['matches', 'adapter-absent']);
  });

  test('of a few tokens count, too, where another explanation leaves next to nothing', () => {
    const few = measured(measure('checkpoint', 0.31), measure('base', 3e-7, 2.7));
    expect(judgeProof(few, [answer()]).verdict).toBe('adapter-absent');
    const rounding = measured(
      measure('checkpoint', 4e-7),
      measure('base', 0.34, -2),
      measure('missing', 1e-8, 9, 'k_proj'),
    );
    expect(judgeProof(rounding, [answer()])).toMatchObject({
      verdict: 'matches',
      detail: expect.not.stringContaining('too little') as unknown,
    });
  });

  test('an adapter that changes next to nothing is told as such', () => {
    const found = judgeProof(measured(measure('checkpoint', 0.02), measure('base', 0.02, -1)), []);
    expect([found.verdict, found.detail]).toEqual([
      'matches',
      expect.stringContaining('too little to tell them apart'),
    ]);
  });

  test('of an adapter that cannot be told from its base model must be nearer to both', () => {
    const quantized = judgeProof(measured(measure('checkpoint', 0.12), measure('base', 0.12, -1)), [answer()]);
    const other = judgeProof(measured(measure('checkpoint', 0.39), measure('base', 0.38, 0.3)), [answer()]);
    expect([quantized.verdict, other.verdict]).toEqual(['matches', 'wrong-base-model']);
    expect(judgeProof(measured(measure('checkpoint', 0.39), measure('base', 2, -9)), []).verdict).toBe('matches');
  });

  test('of text alone are compared, too', () => {
    const [first, second] = [measure('checkpoint', 0), measure('base', 0)].map((each) => ({ ...each, distance: null }));
    const judge = (regret: number, lead: number) =>
      judgeProof({ ...measured({ ...first!, regret: 0.8 }, { ...second!, regret, lead }), scored: 0 }, [answer()]);
    const found = judge(0, 9);
    expect([found.verdict, judge(0.7, 0).verdict]).toEqual(['adapter-absent', 'wrong-base-model']);
    expect(found.detail).toContain(
      "its text is 0.8 nats less likely than the checkpoint's own, 0 than the base model's",
    );
  });

  test('of answers to other prompts name the chat template; one token more or less is none', () => {
    const far = measured(measure('checkpoint', 2), measure('base', 2, 0));
    expect(judgeProof(far, [answer(9), answer(3)])).toMatchObject({
      verdict: 'wrong-chat-template',
      detail: expect.stringContaining('other prompts of 1 of 2 conversations') as unknown,
    });
    expect(judgeProof(far, [answer(4), answer(null)]).verdict).toBe('wrong-base-model');
  });
});

async function evaluated(store: Store) {
  await makeRun(store, { steps: 3, evals: { 2: 0.5 } });
  return findTrainedPolicy(store, { run: 'demo', branch: null, step: 3 });
}

describe('prompts', () => {
  test('are those of the newest evaluation up to the step, chosen by the seed', async () => {
    const store = temporaryStore();
    const { checkpoint, adapter } = await evaluated(store);
    const choice = { place: checkpoint, adapterSha256: adapter.sha256, count: 2, seed: 0 };
    const chosen = await chooseRecordedPrompts(store, choice);
    const { attempts } = (await readEvalRollouts(store, { run: 'demo', branch: 0, step: 2 }))!;
    const recorded = attempts.flatMap(({ calls }) => calls.map(({ promptTokenIds }) => promptTokenIds.join()));
    expect(chosen.length).toBeGreaterThan(0);
    for (const { tokenIds } of chosen) expect(recorded).toContain(tokenIds.join());
    expect(await chooseRecordedPrompts(store, choice)).toEqual(chosen);
  });

  test('of a run without evaluations are those that it trained on', async () => {
    const store = temporaryStore();
    await makeRun(store, { steps: 2 });
    const { checkpoint, adapter } = await findTrainedPolicy(store, { run: 'demo', branch: null, step: 2 });
    const choice = { place: checkpoint, adapterSha256: adapter.sha256, count: 8, seed: 0 };
    expect(await chooseRecordedPrompts(store, choice)).not.toEqual([]);
  });
});

describe('a proof', () => {
  const KEY = 'canary-of-a-deployment';
  const completion = (content: string, more: object = {}): StandInAnswer => ({
    json: {
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop', ...more }],
      usage: { prompt_tokens: 3 },
    },
  });

  async function proving(reply: (body: Record<string, unknown>) => StandInAnswer) {
    const bodies: Record<string, unknown>[] = [];
    const server: StandIn = await startStandIn({
      key: KEY,
      routes: [
        {
          method: 'POST',
          path: /^\/v1\/chat\/completions$/,
          answer({ body }) {
            bodies.push(JSON.parse(body.toString()) as Record<string, unknown>);
            return reply(bodies.at(-1)!);
          },
        },
      ],
    });
    onTestFinished(() => server.close());
    const store = temporaryStore();
    const { checkpoint, adapter } = await evaluated(store);
    const deployment = await addDeployment(store, { target: 's3', options: {}, checkpoint, adapter, prompts: 2 });
    const asked: MeasureRequest[] = [];
    const request: ProofRequest = {
      store,
      deployment,
      key: KEY,
      fetch,
      signal: new AbortController().signal,
      address: { baseUrl: `${server.url}/v1`, model: 'deployed', keyVariable: 'KEY' },
    };
    const prove = () =>
      proveAnswers((measuring) => {
        asked.push(measuring);
        return Promise.resolve(measured(measure('checkpoint', 0), measure('base', 0.5, -20)));
      }, request);
    return { prove, bodies, asked };
  }

  test('asks greedily for log-probabilities, and measures what was sampled', async () => {
    const content = [
      { token: ' 7', logprob: -0.1, bytes: [32, 55] },
      { token: '�', logprob: -0.2, bytes: [0xf0, 0x9f] },
      { token: '�', logprob: -0.3, bytes: [0x98, 0x80] },
    ];
    const { prove, bodies, asked } = await proving(() => completion('7', { logprobs: { content } }));
    expect(await prove()).toMatchObject({ verdict: 'matches', prompts: asked[0]!.answers.length });
    expect(bodies[0]).toMatchObject({
      model: 'deployed',
      temperature: 0,
      max_tokens: 32,
      logprobs: true,
      stream: false,
    });
    expect(bodies[0]).toHaveProperty('messages');
    expect(asked[0]!.policy).toBe('demo@12');
    expect(asked[0]!.answers[0]).toMatchObject({ text: ' 7😀', hasEnded: true, scores: [{}, { logprob: -0.2 }, {}] });
    expect(asked[0]!.answers[0]).not.toHaveProperty('promptTokens');
  });

  test('goes on without log-probabilities where they are refused', async () => {
    const { prove, bodies, asked } = await proving(({ logprobs }) =>
      logprobs === true ? { status: 400, json: { error: 'no logprobs' } } : completion('7'),
    );
    expect(await prove()).toMatchObject({ verdict: 'matches' });
    expect(bodies.filter(({ logprobs }) => logprobs === true)).toHaveLength(1);
    expect(asked[0]!.answers[0]).toMatchObject({ text: '7', scores: null });
  });

  test('fails where nothing can be compared: what was sampled is cut out of the answer', async () => {
    const message = { role: 'assistant', content: null, tool_calls: [{ id: '1' }] };
    const { prove, asked } = await proving(() => completion('', { message, finish_reason: 'tool_calls' }));
    expect(await prove()).toMatchObject({ verdict: 'different', measured: {} });
    expect(asked).toEqual([]);
  });

  test('is tried again while the deployment is away, and not where it answers something else', async () => {
    const away = await proving(() => ({ status: 503, json: {} }));
    await expect(away.prove()).rejects.toMatchObject({ type: 'TargetUnavailable' });
    const other = await proving(() => ({ json: { object: 'list' } }));
    await expect(other.prove()).rejects.toThrow('s3 must answer with a chat completion, but gave something else');
  });
});
