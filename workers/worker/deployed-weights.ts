/** Measurements and files that deployments need of weights, made by the GPU worker's Python on this host. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { TemperError } from '../../core/failures.ts';
import { MeasuredAnswers } from '../../outbound/deploy/proof-verdict.ts';
import { proveAnswers, type MeasureRequest } from '../../outbound/deploy/proof.ts';
import type { GgufRequest, Proof, ProofRequest, WriteGguf } from '../../outbound/deploy/targets/target.ts';
import { writeKnownModels } from '../base-models/known-models.ts';
import type { TemperConfig } from '../config/config.ts';
import { cacheFolder } from '../project/folders.ts';
import { exportByPython, GGUF_FILE } from '../python/export-policy.ts';
import { askPython } from '../python/run-program.ts';

export interface WeightsPlace {
  readonly project: string;
  readonly config: Pick<TemperConfig, 'models'>;
  readonly storeUri: string;
  readonly env: NodeJS.ProcessEnv;
}

export interface DeployedWeights {
  readonly prove: (request: ProofRequest) => Promise<Proof>;
  readonly writeGguf: WriteGguf;
}

export function openWeights(place: WeightsPlace): DeployedWeights {
  return {
    prove: (request) => proveAnswers((measuring) => measurePolicy(place, measuring), request),
    writeGguf: (request) => writeGguf(place, request),
  };
}

const ignore = (): void => undefined;
const installation = ({ env }: WeightsPlace) => ({ env, cache: cacheFolder(env), onEvent: ignore });

async function measurePolicy(place: WeightsPlace, request: MeasureRequest): Promise<MeasuredAnswers> {
  const { policy, answers, signal } = request;
  // Prompts of held-out scenarios: for this process's user alone, and not for long.
  const folder = await mkdtemp(join(tmpdir(), 'temper-proof-'));
  try {
    const work = join(folder, 'answers.json');
    await writeFile(work, JSON.stringify({ answers }), { mode: 0o600 });
    const flags = { store: place.storeUri, policy, models: writeKnownModels(place.project, place.config), work };
    const failure = `the answers could not be compared with ${policy}`;
    return await askPython(MeasuredAnswers, failure, { ...installation(place), name: 'measure', flags, signal });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeGguf(place: WeightsPlace, request: GgufRequest): Promise<string> {
  const { policy, chatTemplateSha256, folder, quantize, signal } = request;
  const { exported, lastLine } = await exportByPython({
    storeUri: place.storeUri,
    models: writeKnownModels(place.project, place.config),
    policy,
    folder,
    format: 'gguf',
    dtype: quantize === null ? 'float16' : 'float32',
    quantize,
    signal,
    chatTemplateSha256: chatTemplateSha256 ?? undefined,
    ...installation(place),
  });
  if (exported !== null) return join(folder, GGUF_FILE);
  throw new TemperError('EngineFailed', `${policy} could not be merged: ${lastLine}; run temper doctor`);
}
