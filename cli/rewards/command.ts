/** Commands for rewards that a run is given from outside. */
import { JSON_FLAG, RUN_ARGUMENT } from '../../operations/flags.ts';
import * as rewards from '../../operations/rewards.ts';
import { defineCommand } from '../command-line/command.ts';
import { actionsOf } from '../command-line/to-command.ts';

export const rewardsCommand = defineCommand({
  name: 'rewards',
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
      description: 'how long links are valid [7]',
    },
    json: JSON_FLAG,
  },
  actions: actionsOf(rewards),
  run: async (context): Promise<number> => (await import('./list-rewards.ts')).listRewards(context),
});
