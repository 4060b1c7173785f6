import { JSON_FLAG } from '../../operations/flags.ts';
import { REVIEW_KEY_VARIABLE } from '../../core/names/door-keys.ts';
import { defineCommand, type CommandContext } from '../command-line/command.ts';
import { placeFlags } from '../command-line/listening.ts';

export const DEFAULT_REVIEW_PORT = 8019;

export const reviewCommand = defineCommand({
  name: 'review',
  group: 'Take rewards from people',
  summary: 'take rewards for attempts over HTTP and behind signed links; needs no engine and no GPU',
  details: [
    "Takes rewards for runs of the project's store that wait for them, from programs (POST, with a key) and from people",
    '(links of temper rewards RUN --links URL). A reward is stored at once; the run continues when Temporal is there.',
    'Clients send a key: the one in TEMPER_REVIEW_KEY, or else a new one, which is shown on the terminal. Links need one',
    'in TEMPER_REVIEW_KEY. Listens on loopback by default and does not speak TLS. Runs until Ctrl-C.',
  ],
  examples: ['temper review', 'temper review --host 0.0.0.0 --allow-host rewards.internal'],
  arguments: {},
  flags: {
    ...placeFlags({ keyVariable: REVIEW_KEY_VARIABLE, defaultPort: DEFAULT_REVIEW_PORT }),
    json: { ...JSON_FLAG, description: 'print one JSON object when it is ready; needs TEMPER_REVIEW_KEY' },
  },
  run: async (context): Promise<number> => (await import('./review.ts')).serveReviews(context),
});

export type ReviewContext = CommandContext<typeof reviewCommand>;
