/** Recomputes a step on this machine with the GPU worker's Python and compares it with the recorded one. */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { WorkFailed } from '../../core/contract/failures.ts';
import type { PolicyFiles } from '../../core/contract/contract.ts';
import { DEFAULT_THREADS, MAIN_POLICY } from '../../core/contract/wire-constants.ts';
import { policiesOf } from '../../store/records/runs/manifest.ts';
import type { InstallOptions } from '../../workers/install/install.ts';
import { projectFolders } from '../../workers/project/folders.ts';
import { runPythonProgram } from '../../workers/python/run-program.ts';
import { trainedBase } from '../../workers/config/loaded-base.ts';
import { formatNumber } from '../../core/reports/format.ts';
import type { RecomputePlan } from './read-recompute-plan.ts';

const Difference = z.object({ max: z.number().nullable(), share: z.number().nullable() }).nullable();
type Difference = z.infer<typeof Difference>;
const Weights = z.object({
  adapterSha256: z.string(),
  optimizerSha256: z.string(),
  /** Null if the recorded bytes cannot be read any more. */
  differences: z.object({ adapter: Difference, optimizer: Difference }).nullable(),
});
const RecomputedSchema = Weights.extend({
  manifestSha256: z.string(),
  platform: z.record(z.string(), z.union([z.string(), z.number()])),
  /** The policies beside `main`; absent if there are none. */
  policies: z.record(z.string(), Weights).optional(),
});
type Weights = z.infer<typeof Weights>;
type Recomputed = z.infer<typeof RecomputedSchema>;

export interface Recomputation extends Recomputed {
  readonly policy: string;
  readonly verdict: 'same bytes' | 'equal up to rounding' | 'differs';
  /** The verdict as a sentence. */
  readonly text: string;
}

/** Largest relative difference that rounding explains; another step would differ by about 1. */
const ROUNDING_SHARE = 0.05;

export interface RecomputeOptions extends InstallOptions {
  readonly project: string;
  readonly storeUri: string;
  /** True if devices hold parts of the base model here; the bytes are the same. */
  readonly shardBaseModel: boolean;
}

export async function recompute(plan: RecomputePlan, options: RecomputeOptions): Promise<Recomputation> {
  return judge(plan, await runPython(plan, options));
}

async function runPython({ policy, manifest, work }: RecomputePlan, options: RecomputeOptions): Promise<Recomputed> {
  const { models } = projectFolders(options.project);
  const { loadIn4bit } = trainedBase(manifest);
  const engine = {
    // Threads of the recorded step: sums depend on them.
    threads: Number(manifest.platform['threads'] ?? DEFAULT_THREADS),
    loadIn4bit,
    // Weights in 4 bits are not sharded.
    shardBaseModel: options.shardBaseModel && !loadIn4bit,
  };
  const settings = { store: options.storeUri, models: existsSync(models) ? models : null, engine };
  const program = { ...options, name: 'recompute', input: { settings, work }, keepsFailure: true } as const;
  const { answer, lastLine } = await runPythonProgram(program);
  if (answer !== null) return RecomputedSchema.parse(answer);
  throw new WorkFailed(`${policy} could not be re-computed: ${lastLine}; pass --no-recompute to check the rest`);
}

function judge({ policy, manifest, manifestSha256 }: RecomputePlan, made: Recomputed): Recomputation {
  const tell = (verdict: Recomputation['verdict'], text: string) => ({
    ...made,
    policy,
    verdict,
    text: `${policy}: ${text}`,
  });
  const recorded = policiesOf(manifest);
  const other = recorded.find(([name, files]) => !isSame(files, madeOf(made, name)));
  if (other === undefined) {
    const isWhole = made.manifestSha256 === manifestSha256;
    const rest = isWhole ? '' : ' (not its manifest: another platform or version wrote it)';
    const names = recorded.length === 1 ? '' : ` of ${recorded.map(([name]) => name).join(', ')}`;
    return tell('same bytes', `adapter and optimizer state${names} have the same bytes${rest}`);
  }
  const platforms = describePlatforms(manifest.platform, made.platform);
  const difference = largest(recorded.map(([name]) => madeOf(made, name)?.differences?.adapter ?? null));
  const distance = describeDifference(difference);
  if (platforms === null)
    return tell('differs', `the bytes differ (${distance}), on the platform that it was trained on`);
  const isClose = (difference?.share ?? Infinity) <= ROUNDING_SHARE;
  return isClose
    ? tell('equal up to rounding', `equal up to rounding (${distance}); ${platforms}`)
    : tell('differs', `the values differ (${distance}); ${platforms}`);
}

function madeOf(made: Recomputed, policy: string): Weights | undefined {
  return policy === MAIN_POLICY ? made : made.policies?.[policy];
}

function isSame({ adapter, optimizer }: PolicyFiles, made: Weights | undefined): boolean {
  return made?.adapterSha256 === adapter.sha256 && made.optimizerSha256 === optimizer.sha256;
}

/** The one that says most against the step; null, which says nothing, counts as the largest. */
function largest(differences: readonly Difference[]): Difference {
  const sizeOf = (difference: Difference) => difference?.share ?? Infinity;
  return differences.toSorted((a, b) => sizeOf(b) - sizeOf(a))[0] ?? null;
}

function describeDifference(difference: Difference): string {
  if (difference === null) return 'the recorded bytes cannot be read';
  const share = difference.share === null ? '' : `, ${formatNumber(difference.share * 100)} % of what the step changed`;
  return `max difference ${formatNumber(difference.max)}${share}`;
}

/** Difference between platforms; null if there is none. */
function describePlatforms(recorded: Recomputed['platform'], here: Recomputed['platform']): string | null {
  const names = [...new Set([...Object.keys(recorded), ...Object.keys(here)])].toSorted();
  const other = names.filter((name) => recorded[name] !== here[name]);
  if (other.length === 0) return null;
  const parts = other.map((name) => `${name} ${recorded[name] ?? 'none'}, here ${here[name] ?? 'none'}`);
  return `trained on another platform (${parts.join('; ')})`;
}
