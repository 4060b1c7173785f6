/** Lists the attempts that wait for a reward, and gives rewards. */
import { plural } from '../core/reports/format.ts';
import { RUN_ARGUMENT, type Flags } from './flags.ts';
import { defineOperation } from './operation.ts';
import type { GivenRewards } from './give-rewards.ts';
import type { FoundRewards } from './results.ts';

const work = () => import('./give-rewards.ts');

const HELP = [
  'For runs whose agent has reward: external({ … }). temper rewards RUN lists the attempts that wait.',
  'The last value before a step is decided counts; later ones are refused.',
  'Needs no server: without one, the run continues once its server and a worker are running.',
] as const;
const GIVER_FLAGS = {
  by: { kind: 'text', placeholder: 'WHO', description: 'who gives the reward; recorded with it' },
  note: { kind: 'text', placeholder: 'TEXT', description: 'why; recorded with it' },
} as const satisfies Flags;

export const rewards = defineOperation({
  name: 'rewards',
  group: 'Take rewards from people',
  summary: 'list the attempts of a run that wait for a reward, oldest first; give rewards',
  details: [
    'Reads the store and needs no server. See temper rewards give for how to give one.',
    '--links prints a signed link for each attempt, to a page of temper review on which a person gives its reward, once.',
  ],
  examples: ['temper rewards support', 'temper rewards support --links https://rewards.example'],
  arguments: { run: RUN_ARGUMENT },
  flags: {
    links: {
      kind: 'text',
      placeholder: 'URL',
      description: 'also print links; address of temper review, with the key in TEMPER_REVIEW_KEY',
    },
    'expires-days': {
      kind: 'number',
      minimum: 0.01,
      maximum: 365,
      placeholder: 'N',
      description: 'how long links are valid',
      default: '7',
      needs: ['links'],
    },
  },
  effect: 'reads',
  run: async (input, place): Promise<FoundRewards> => (await import('./list-rewards.ts')).findAwaited(place, input),
  lines: async (found) => (await import('./list-rewards.ts')).awaitedLines(found),
});

export const rewardsGive = defineOperation({
  name: 'rewards give',
  summary: 'give an attempt of a run its reward',
  details: HELP,
  examples: [
    'temper rewards give support 0.3.2.5 0.7 --by ann --note "polite, but too long"',
    'temper rewards give support 0.3.2.5 -1 --metric tone=0.2',
  ],
  arguments: { run: RUN_ARGUMENT, attempt: { placeholder: 'ATTEMPT' }, value: { placeholder: 'VALUE' } },
  flags: {
    metric: { kind: 'texts', placeholder: 'NAME=VALUE', description: 'a number recorded with the reward; repeatable' },
    ...GIVER_FLAGS,
    key: { kind: 'text', placeholder: 'KEY', description: 'idempotency key: sent again, it gives nothing twice' },
  },
  effect: 'changes',
  says: ({ run, attempt, value }) =>
    Promise.resolve(
      `The attempt ${attempt} of ${run} gets the reward ${value}. It cannot be taken back once its step is decided.`,
    ),
  run: async (input, place) => (await work()).giveReward(place, input),
  lines: (given) => {
    const [one] = given.rewards;
    return [...(one === undefined ? [] : [describeGiving(one)]), ...wakeLines(given)];
  },
});

export const rewardsImport = defineOperation({
  name: 'rewards import',
  summary: 'give many attempts of a run their rewards by a file',
  details: [
    ...HELP,
    'FILE has a line for each attempt: CSV with the columns attempt and reward, and any of by, note, key and metric.NAME,',
    'or JSON lines with attempt, reward, metrics, by, note and key. One bad line refuses the whole file.',
  ],
  examples: ['temper rewards import support rewards.csv --by "support team"'],
  arguments: { run: RUN_ARGUMENT, file: { placeholder: 'FILE' } },
  flags: GIVER_FLAGS,
  effect: 'changes',
  isLocal: true,
  run: async (input, place) => (await work()).importRewards(place, input),
  lines: (given) => {
    const same = given.rewards.filter(({ outcome }) => outcome === 'same').length;
    const count = plural(given.rewards.length - same, 'reward');
    return [`${count} given${same === 0 ? '' : `, ${same} given before`}`, ...wakeLines(given)];
  },
});

function describeGiving({ attempt, reward, outcome, missing }: GivenRewards['rewards'][number]): string {
  if (outcome === 'same') return `${attempt} has the reward ${reward} already`;
  if (missing === 0) return `${attempt} has the reward ${reward}; its group is complete`;
  return `${attempt} has the reward ${reward}; ${plural(missing, 'attempt')} of its group still wait`;
}

function wakeLines({ run, awake }: GivenRewards): string[] {
  switch (awake) {
    case 'told':
      return [`the run ${run} was told`];
    case 'not running':
      return [`the run ${run} is not running; temper train continues it`];
    case 'no server':
      return [`the run ${run} continues once its server and a worker are running (temper train or temper dev)`];
    case null:
    default:
      return [];
  }
}
