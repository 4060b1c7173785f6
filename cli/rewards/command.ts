/** Commands for rewards that a run is given from outside. */
import { defineCommand, JSON_FLAG, RUN_ARGUMENT } from '../command-line/command.ts';

export const rewardCommand = defineCommand({
  name: 'reward',
  summary: 'give an attempt of a run its reward, or many by a file',
  usage: 'reward RUN ATTEMPT VALUE [flags] | reward RUN --file FILE [flags]',
  details: [
    'For runs whose agent has reward: external({ … }). temper rewards RUN lists the attempts that wait.',
    'The last value before a step is decided counts; later ones are refused.',
    'FILE has a line for each attempt: CSV with the columns attempt and reward, and any of by, note, key and metric.NAME,',
    'or JSON lines with attempt, reward, metrics, by, note and key. One bad line refuses the whole file.',
    'Needs no server: without one, the run continues once its server and a worker are running.',
  ],
  examples: [
    'temper reward support 0.3.2.5 0.7 --by ann --note "polite, but too long"',
    'temper reward support 0.3.2.5 -1 --metric tone=0.2',
    'temper reward support --file rewards.csv --by "support team"',
  ],
  arguments: {
    run: RUN_ARGUMENT,
    attempt: { placeholder: 'ATTEMPT', optional: true },
    value: { placeholder: 'VALUE', optional: true },
  },
  flags: {
    file: { kind: 'text', placeholder: 'FILE', description: 'rewards of many attempts: .csv, .tsv or .jsonl' },
    metric: { kind: 'texts', placeholder: 'NAME=VALUE', description: 'a number recorded with the reward; repeatable' },
    by: { kind: 'text', placeholder: 'WHO', description: 'who gives the reward; recorded with it' },
    note: { kind: 'text', placeholder: 'TEXT', description: 'why; recorded with it' },
    key: { kind: 'text', placeholder: 'KEY', description: 'idempotency key: sent again, it gives nothing twice' },
  },
  run: async (context): Promise<number> => (await import('./give-rewards.ts')).giveRewards(context),
});

export const rewardsCommand = defineCommand({
  name: 'rewards',
  summary: 'list the attempts of a run that wait for a reward, oldest first',
  details: [
    'Reads the store and needs no server. See temper reward for how to give one.',
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
      description: 'how long links are valid [7]',
    },
    json: JSON_FLAG,
  },
  run: async (context): Promise<number> => (await import('./list-rewards.ts')).listRewards(context),
});
