/** The targets of `temper deploy`, by name. */
import type { DeployTargetName } from '../../core/contract/deploy.ts';
import { TemperError } from '../../core/contract/failures.ts';
import type { DeployTarget } from './targets/target.ts';
import { fireworksTarget } from './targets/fireworks.ts';
import { huggingFaceTarget } from './targets/huggingface.ts';
import { ollamaTarget } from './targets/ollama.ts';
import { s3Target } from './targets/s3.ts';
import { serverTarget } from './targets/server.ts';
import { togetherTarget } from './targets/together.ts';
import { vllmTarget } from './targets/vllm.ts';
import { wandbTarget } from './targets/wandb.ts';

const TARGETS: Readonly<Record<DeployTargetName, DeployTarget>> = {
  huggingface: huggingFaceTarget,
  together: togetherTarget,
  fireworks: fireworksTarget,
  wandb: wandbTarget,
  s3: s3Target,
  vllm: vllmTarget,
  ollama: ollamaTarget,
  server: serverTarget,
};

/** Refused if a later version of Temper recorded it. */
export function requireTarget(name: string): DeployTarget {
  const target = (TARGETS as Readonly<Record<string, DeployTarget | undefined>>)[name];
  if (target !== undefined) return target;
  throw new TemperError('LaterVersion', `this version of Temper does not know the target ${name}; upgrade it`);
}
