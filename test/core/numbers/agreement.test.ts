import { expect, test } from 'vitest';

import { agreeOnNames, agreeOnNumbers, type Rating } from '../../../core/numbers/agreement.ts';

/** Published examples: a line for each reviewer, a place for each thing, a point where an answer is missing. */
const BINARY = ['0100000010', '1110010000']; // Krippendorff (2011), section A
const FOUR_OBSERVERS = ['123321412...', '1233224125.3', '.3332342251.', '12332441251.']; // section C there
const THREE_CODERS = ['.....34121133.3', '1.213343.......', '..21344.21133.4']; // Wikipedia

test("Krippendorff's alpha of published examples", () => {
  expect(agreeOnNames(read(BINARY, String)).alpha).toBeCloseTo(0.095, 3);
  expect(agreeOnNames(read(FOUR_OBSERVERS, String)).alpha).toBeCloseTo(0.743, 3);
  expect(agreeOnNumbers(read(FOUR_OBSERVERS, Number)).alpha).toBeCloseTo(0.849, 3);
  expect(agreeOnNames(read(THREE_CODERS, String)).alpha).toBeCloseTo(0.691, 3);
  expect(agreeOnNumbers(read(THREE_CODERS, Number)).alpha).toBeCloseTo(0.811, 3);
});

test('things that one reviewer answered alone do not count', () => {
  expect(agreeOnNames(read(FOUR_OBSERVERS, String))).toMatchObject({ reviewers: 4, units: 11 });
  const alone = agreeOnNames(read(['0101'], String));
  expect(alone).toEqual({ alpha: null, reviewers: 1, units: 0 });
});

test('answers that are all equal have no alpha: nothing shows that reviewers can tell things apart', () => {
  expect(agreeOnNames(read(['000', '000'], String))).toEqual({ alpha: null, reviewers: 2, units: 3 });
  expect(agreeOnNames([])).toEqual({ alpha: null, reviewers: 0, units: 0 });
});

test('full agreement is 1, and opposite answers are below 0', () => {
  expect(agreeOnNames(read(['0101', '0101'], String)).alpha).toBe(1);
  expect(agreeOnNames(read(['0101', '1010'], String)).alpha).toBeLessThan(0);
});

function read<T>(lines: readonly string[], valueOf: (character: string) => T): Rating<T>[] {
  return lines.flatMap((line, reviewer) =>
    line
      .split('')
      .flatMap((character, unit) =>
        character === '.' ? [] : [{ unit: String(unit), reviewer: String(reviewer), value: valueOf(character) }],
      ),
  );
}
