/** Every view by its path below `/api/`: what `temper ui` serves and exports, and `temper mcp` offers. */
import { ATTEMPT_PARAMETERS } from '../api/attempt-query.ts';
import type { ViewContext } from '../context/context.ts';
import { viewCurve } from '../runs/curve.ts';
import { viewAgreement } from '../runs/agreement.ts';
import { viewRun } from '../runs/run.ts';
import { viewComparison } from '../runs/compare.ts';
import { listRunRows } from '../runs/runs.ts';
import { viewLanes } from '../runs/lanes.ts';
import { searchAttempts } from '../index/search-files.ts';
import { viewAttemptOf, viewRawAttempt } from '../attempts/attempt.ts';
import { viewAwaited } from '../attempts/awaited.ts';
import { viewGroupOf } from '../attempts/group.ts';
import { viewStep } from '../attempts/step.ts';
import { viewTokens } from '../attempts/tokens.ts';
import { viewCheckpoints } from '../runs/checkpoints.ts';

export interface ViewRoute {
  /** `runs/:run/steps/:step` */
  readonly path: string;
  /** For `temper mcp` and docs: what it answers. */
  readonly about: string;
  /** Parameters of the query, each with its meaning. */
  readonly query: Readonly<Record<string, string>>;
  /** Throws NotFound, or BadConfig for a wrong parameter. */
  answer(this: void, context: ViewContext, parts: Parts, query: URLSearchParams): Promise<object>;
}

type Parts = Readonly<Record<string, string>>;

/** The part of a path that its route names. */
const part = (parts: Parts, name: string): string => parts[name]!;

export const VIEW_ROUTES: readonly ViewRoute[] = [
  {
    path: 'runs',
    about: 'All runs of the store, newest first: state, progress, reward, what they wait for, cost.',
    query: {},
    answer: (context) => listRunRows(context),
  },
  {
    path: 'runs/:run',
    about: 'One run: state, configuration, changed settings, lineage, advisories with remedies.',
    query: {},
    answer: (context, parts) => viewRun(context, part(parts, 'run')),
  },
  {
    path: 'runs/:run/curve',
    about: 'Metrics of the committed steps and the evaluations.',
    query: { after: 'leave out steps up to this one', branch: 'the branch to follow; default: the newest' },
    answer: (context, parts, query) => viewCurve(context, part(parts, 'run'), query),
  },
  {
    path: 'runs/:run/agreement',
    about: 'How far the reviewers of the run agree, for each step and over all; null unless people review it.',
    query: {},
    answer: (context, parts) => viewAgreement(context, part(parts, 'run')),
  },
  {
    path: 'runs/:run/lanes',
    about: 'What happened when: rollouts, judging, training, evaluations, waits and pauses.',
    query: { from: 'first step', to: 'last step' },
    answer: (context, parts, query) => viewLanes(context, part(parts, 'run'), query),
  },
  {
    path: 'runs/:run/checkpoints',
    about: 'Checkpoints with evaluation, size, and where each is deployed.',
    query: {},
    answer: (context, parts) => viewCheckpoints(context, part(parts, 'run')),
  },
  {
    path: 'runs/:run/rewards',
    about: 'Attempts that wait for a reward from outside, as `temper rewards RUN --json`.',
    query: {},
    answer: (context, parts) => viewAwaited(context, part(parts, 'run')),
  },
  {
    path: 'runs/:run/steps/:step',
    about: 'One step: its groups with their rewards, which were trained or not and why, the evaluation.',
    query: { branch: 'default: the one that the newest branch continues' },
    answer: (context, parts, query) => viewStep(context, part(parts, 'run'), part(parts, 'step'), query),
  },
  {
    path: 'runs/:run/groups/:group',
    about: 'Attempts of one scenario side by side, with the judge. The id is BRANCH.STEP.GROUP, or eval.BRANCH.STEP.',
    query: {},
    answer: (context, parts) => viewGroupOf(context, part(parts, 'run'), part(parts, 'group')),
  },
  {
    path: 'runs/:run/attempts',
    about: 'Attempts that match all filters.',
    query: ATTEMPT_PARAMETERS,
    answer: (context, parts, query) => searchAttempts(context, part(parts, 'run'), query),
  },
  {
    path: 'runs/:run/attempts/:attempt',
    about: 'One attempt: turns, tool calls, rewards, logs, times.',
    query: {},
    answer: (context, parts) => viewAttemptOf(context, part(parts, 'run'), part(parts, 'attempt')),
  },
  {
    path: 'runs/:run/attempts/:attempt/tokens',
    about: 'Tokens of an attempt as they were recorded, with log-probabilities, entropy, advantage and mask.',
    query: {},
    answer: (context, parts) => viewTokens(context, part(parts, 'run'), part(parts, 'attempt')),
  },
  {
    path: 'runs/:run/attempts/:attempt/raw',
    about: 'The record of an attempt as it is stored.',
    query: {},
    answer: (context, parts) => viewRawAttempt(context, part(parts, 'run'), part(parts, 'attempt')),
  },
  {
    path: 'compare',
    about: 'Curves of two to six runs, and the settings in which they differ.',
    query: { runs: 'names, with commas between' },
    answer: (context, _parts, query) => viewComparison(context, query),
  },
];
