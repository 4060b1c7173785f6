import { EvalResult, firstIssue, isFromLaterVersion } from '../../../core/contract/contract.ts';
import { laterVersion, TemperError } from '../../../core/contract/failures.ts';
import { canonicalJson } from '../../../core/text/hashes.ts';
import { planEvaluation } from '../../../core/plan/evaluation.ts';
import type { RunPosition } from '../../../core/plan/step.ts';
import { summariseEval } from '../groups/eval-result.ts';
import { decodeJson } from '../../bytes/json.ts';
import { evalKey, evalRolloutsKey, type StepPlace } from '../../layout.ts';
import { parseRollouts, type StoredRollouts } from '../groups/group-files.ts';
import { compareInputs, plannedConfig, type VerifyContext } from './context.ts';

interface EvalFile {
  result: EvalResult;
  inputsSha256: string;
}

/** An evaluation's numbers, made again from its attempts; a step may have none. */
export async function verifyEval(
  context: VerifyContext,
  place: StepPlace,
  position: RunPosition | null,
): Promise<void> {
  const { store, findings } = context;
  const [key, rolloutsKey] = [evalKey(place), evalRolloutsKey(place)];
  const [summary, bytes] = [await store.read(key), await store.read(rolloutsKey)];
  if (summary === null && bytes === null) return;
  findings.count('evaluations');
  const file =
    summary && (await findings.attempt('evaluations', key, async () => parseEval(decodeJson(summary, key), key)));
  if (bytes === null) return findings.problem('evaluations', rolloutsKey, 'it is missing');
  const stored = await findings.attempt('evaluations', rolloutsKey, () => parseRollouts(bytes, rolloutsKey));
  if (stored === null) return;
  if (file) checkNumbers(context, place, file, stored);
  const config = plannedConfig(context, place);
  const planned = config && position && planEvaluation(config, position).inputsSha256;
  compareInputs(context, rolloutsKey, stored.rollouts.header.inputsSha256, planned);
}

function checkNumbers(
  { findings }: VerifyContext,
  place: StepPlace,
  { result, inputsSha256 }: EvalFile,
  { rollouts, sha256 }: StoredRollouts,
): void {
  const [key, rolloutsKey] = [evalKey(place), evalRolloutsKey(place)];
  const { header, attempts } = rollouts;
  if (result.rolloutsSha256 !== sha256) {
    findings.problem(
      'evaluations',
      rolloutsKey,
      `${key} records its hash as ${result.rolloutsSha256}, but it has ${sha256}`,
    );
    return;
  }
  const { scenarios, ...expected } = summariseEval(place.step, attempts, sha256);
  // Evaluations from before they were counted have no scenarios.
  const counted = 'scenarios' in result ? { scenarios: scenarios ?? null } : {};
  // For display: the attempts do not say of which class they are.
  const shown = result.lostClasses === undefined ? {} : { lostClasses: result.lostClasses };
  const isSame = canonicalJson({ ...expected, ...counted, ...shown }) === canonicalJson(result);
  if (!isSame || inputsSha256 !== header.inputsSha256)
    findings.problem('evaluations', key, 'its numbers do not match its attempts');
}

function parseEval(value: unknown, key: string): EvalFile {
  const { schema: _schema, inputsSha256, ...result } = (value ?? {}) as Record<string, unknown>;
  const parsed = EvalResult.safeParse(result);
  if (parsed.success && typeof inputsSha256 === 'string') return { result: parsed.data, inputsSha256 };
  if (parsed.error && isFromLaterVersion(parsed.error, result)) throw laterVersion(key, firstIssue(parsed.error));
  throw new TemperError('StoreCorrupt', `${key} is not a valid evaluation`);
}
