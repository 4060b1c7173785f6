/** How far the reviewers of a run agree: of each step, and of all. */
import pLimit from 'p-limit';

import {
  agreeOnNames,
  agreeOnNumbers,
  type Agreement,
  type Rating,
  type ReviewAgreement,
} from '../../../core/numbers/agreement.ts';
import type { RunState } from '../../../core/contract/contract.ts';
import { branchOfStep } from '../../../core/names/lineage.ts';
import { comparisonRatings, scoreRatings } from '../../../core/numbers/review.ts';
import type { GroupPlace, StepPlace } from '../../layout.ts';
import type { Store } from '../../store.ts';
import { GROUPS_AT_ONCE } from '../children.ts';
import { givenIn, readGiven } from './given-rewards.ts';
import { listGroups } from '../groups/group-files.ts';

interface Ratings {
  readonly answers: Rating<string>[];
  readonly scores: Rating<number>[];
}

/** Agreement on steps that the run's state has; a run is reviewed by pairs or by scores. */
export async function readAgreement(store: Store, { run, lineage, step: last }: RunState): Promise<ReviewAgreement> {
  const limit = pLimit(GROUPS_AT_ONCE);
  const steps = Array.from({ length: last }, (_, index) => index + 1);
  const ratings = await Promise.all(
    steps.map(async (step) => {
      const place: StepPlace = { run, branch: branchOfStep(lineage, step), step };
      const groups = await limit(() => listGroups(store, place));
      return Promise.all(groups.map((group) => limit(() => readRatings(store, { ...place, group }))));
    }),
  );
  return {
    steps: ratings.map((groups, index) => ({ step: index + 1, alpha: agree(groups).alpha })),
    all: agree(ratings.flat()),
  };
}

async function readRatings(store: Store, place: GroupPlace): Promise<Ratings> {
  const givenRows = givenIn(await readGiven(store, place));
  const unit = `${place.step}.${place.group}`;
  return {
    answers: comparisonRatings(
      unit,
      givenRows.filter((given) => given.kind === 'comparison'),
    ),
    scores: scoreRatings(
      unit,
      givenRows.filter((given) => given.kind === 'reward'),
    ),
  };
}

/** Answers are names, scores are numbers on an interval scale. */
function agree(groups: readonly Ratings[]): Agreement {
  const answers = groups.flatMap((group) => group.answers);
  return answers.length > 0 ? agreeOnNames(answers) : agreeOnNumbers(groups.flatMap((group) => group.scores));
}
