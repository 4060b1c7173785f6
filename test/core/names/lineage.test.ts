import { expect, test } from 'vitest';

import { branchOfStep, describeLineage, planLineage } from '../../../core/names/lineage.ts';

const BRANCHES = [
  { branch: 1, fromBranch: 0, fromStep: 7 },
  { branch: 2, fromBranch: 1, fromStep: 9 },
  { branch: 3, fromBranch: 0, fromStep: 4 },
];

test("a branch's lineage names no branch that it does not stand on", () => {
  expect(planLineage(BRANCHES, 0)).toEqual([]);
  expect(planLineage(BRANCHES, 2)).toEqual(BRANCHES.slice(0, 2));
  expect(planLineage(BRANCHES, 3)).toEqual(BRANCHES.slice(2));
});

test('a step stands on the newest branch that begins before it', () => {
  const lineage = planLineage(BRANCHES, 2);
  expect([0, 7, 8, 9, 10].map((step) => branchOfStep(lineage, step))).toEqual([0, 0, 1, 1, 2]);
  expect(branchOfStep([], 5)).toBe(0);
});

test('a lineage reads from the newest branch back', () => {
  expect(describeLineage(planLineage(BRANCHES, 2))).toBe('branch 2, from step 9 of branch 1, from step 7 of branch 0');
  expect(describeLineage([])).toBeNull();
});
