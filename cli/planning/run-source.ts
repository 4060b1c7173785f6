/** What a run trains: attempts of an agent, a file of chats, or recorded conversations; and which flags each of them takes. */
import { badConfig } from '../../core/contract/failures.ts';
import type { Flags, FlagValues } from '../../operations/flags.ts';
import type { ProductionSource } from '../../core/contract/contract.ts';
import { ENGINE_FLAGS } from '../command-line/engine-flags.ts';
import { TRACK_FLAGS } from '../command-line/track-flags.ts';
import { EXAMPLE_FLAGS, SUPERVISED_FLAGS } from './run-flag-table.ts';

export type RunSource =
  /** Null: the working folder's. */
  | { readonly kind: 'agent'; readonly file: string | null }
  | { readonly kind: 'chats'; readonly file: string }
  /** The agent is only evaluated. */
  | { readonly kind: 'production'; readonly file: string | null; readonly production: ProductionSource };

/** A nightly step or two of a schedule; the loss corrects by the recorded log-probabilities. */
const MAX_POLICY_AGE = 32;

const heading = 'Recorded conversations';

export const PRODUCTION_FLAGS = {
  'from-production': {
    heading,
    kind: 'text',
    placeholder: 'RUN',
    description:
      'train conversations that temper serve RUN --record kept and that have feedback, instead of playing the agent',
  },
  'at-least': {
    heading,
    kind: 'integer',
    placeholder: 'N',
    minimum: 1,
    description: 'fewest such conversations; with fewer, nothing is trained',
    default: '1',
    needs: ['from-production'],
  },
  epochs: {
    heading,
    kind: 'number',
    placeholder: 'X',
    description: 'how often each chat or conversation is trained',
    default: '1',
  },
  'max-policy-age': {
    heading,
    kind: 'integer',
    placeholder: 'N',
    minimum: 0,
    description: 'most optimizer steps between the policy that answered and the one that trains',
    default: String(MAX_POLICY_AGE),
    needs: ['from-production'],
  },
} satisfies Flags;

interface SourceWords {
  readonly source: string | null;
  readonly flags: FlagValues<typeof PRODUCTION_FLAGS> & Readonly<Record<string, unknown>>;
}

/** Refuses flags that have no effect on the source. */
export function readRunSource({ source, flags }: SourceWords): RunSource {
  const found = findSource({ source, flags });
  for (const [name, value] of Object.entries(flags)) {
    const reason = isGiven(value) ? whyUnused(found, name, isGiven(flags['warm-start'])) : null;
    if (reason !== null) throw badConfig(`--${name} has no effect ${reason}`);
  }
  return found;
}

function findSource({ source: file, flags }: SourceWords): RunSource {
  if (file !== null && file.endsWith('.jsonl')) return { kind: 'chats', file };
  const { 'from-production': run, 'at-least': atLeast, 'max-policy-age': maxPolicyAge } = flags;
  if (run === null) return { kind: 'agent', file };
  const epochs = flags.epochs ?? 1;
  if (!Number.isSafeInteger(epochs) || epochs < 1)
    throw badConfig(
      `--epochs must be a whole number of at least 1 with --from-production, got ${epochs}; pass --epochs 1`,
    );
  const production = { run, atLeast: atLeast ?? 1, maxPolicyAge: maxPolicyAge ?? MAX_POLICY_AGE, epochs };
  return { kind: 'production', file, production };
}

function isGiven(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== null && value !== undefined && value !== false;
}

/** Flags of commands with chats: those of such a run, and how it is started. */
const OF_CHATS: ReadonlySet<string> = new Set([
  'run',
  'from',
  'adapter',
  'steps',
  'epochs',
  ...SUPERVISED_FLAGS,
  ...Object.keys({ ...EXAMPLE_FLAGS, ...TRACK_FLAGS, ...ENGINE_FLAGS }),
]);

/** Flags about attempts that are played, with the reason for which they have no effect on recorded conversations. */
const NOT_OF_PRODUCTION: Readonly<Record<string, string>> = {
  steps: 'the number of conversations and --epochs decide it; leave it out',
  'group-size': 'each conversation is a group of one attempt; leave it out',
  'minimum-group-size': 'each conversation is a group of one attempt; leave it out',
  'replacement-rounds': 'no group is played; leave it out',
  'max-staleness': 'no attempt is played; to leave out old policies, pass --max-policy-age',
  'warm-start': 'to train chats first, run temper train FILE, and pass its run as --from',
  adapter: 'the run starts from the checkpoint that serves; to start from another one, pass --from CHECKPOINT',
  judge: 'the feedback is the reward; leave it out',
};

function whyUnused({ kind }: RunSource, name: string, hasWarmStart: boolean): string | null {
  if (kind === 'chats') return OF_CHATS.has(name) ? null : 'on a file of chats (no attempt is played); leave it out';
  if (kind === 'production' && Object.hasOwn(NOT_OF_PRODUCTION, name))
    return `with --from-production: ${NOT_OF_PRODUCTION[name]}`;
  if (Object.hasOwn(EXAMPLE_FLAGS, name) && !hasWarmStart) return 'without --warm-start; pass both, or leave it out';
  return kind === 'agent' && name === 'epochs' ? 'on an agent that is played; pass --steps' : null;
}

/** Whether a flag that the project sets for every run applies to this one. The rest of a continued run comes from its checkpoint. */
export function takesFromProject(source: RunSource, from: string | null, name: string): boolean {
  if (source.kind === 'agent') return from === null;
  if (name === 'steps' || (name === 'base-model' && (source.kind === 'production' || from !== null))) return false;
  return whyUnused(source, name, true) === null;
}
