/**
 * The proof that a deployment serves a checkpoint: it answers recorded held-out prompts at temperature 0, and its answers
 * are compared with the checkpoint, its base model, and what else a server may make of an adapter.
 */
import { badConfig } from '../../core/contract/failures.ts';
import type { GivenAnswer } from '../../core/contract/programs.ts';
import { askDeployed } from './ask-deployed.ts';
import { judgeProof, type MeasuredAnswers } from './proof-verdict.ts';
import { chooseRecordedPrompts } from './recorded-prompts.ts';
import type { Proof, ProofRequest } from './targets/target.ts';

/** Answers to be measured with the weights in the store. */
export interface MeasureRequest {
  /** `run@step`, with `:policy` for another one than `main`. */
  readonly policy: string;
  readonly answers: GivenAnswer[];
  readonly signal: AbortSignal;
}

/** Computes on the side of the store (the program `measure`). */
export type MeasureAnswers = (request: MeasureRequest) => Promise<MeasuredAnswers>;

const PROMPTS = 8;
const SEED = 0;

export async function proveAnswers(measure: MeasureAnswers, request: ProofRequest): Promise<Proof> {
  const { store, deployment, address, key, fetch, signal } = request;
  const { checkpoint, policy, adapter, target } = deployment;
  const count = deployment.prompts ?? PROMPTS;
  const choice = { place: checkpoint, adapterSha256: adapter.sha256, count, seed: SEED };
  const prompts = await chooseRecordedPrompts(store, choice);
  if (prompts.length === 0)
    throw badConfig(
      `a proof needs recorded calls of ${checkpoint.run} without an enforced form, found none; deploy without it (--no-proof)`,
    );
  const caller = { system: target, keyVariable: address.keyVariable, key, fetch, signal };
  const answers = await askDeployed(caller, address, prompts);
  if (answers.every(({ text, hasEnded }) => text === '' && !hasEnded))
    return {
      verdict: 'different',
      detail: `none of its ${answers.length} answers has text that can be compared`,
      prompts: answers.length,
      measured: {},
    };
  const given = answers.map(({ promptTokenIds, text, scores, hasEnded }) => ({
    promptTokenIds,
    text,
    scores,
    hasEnded,
  }));
  return judgeProof(await measure({ policy, answers: given, signal }), answers);
}
