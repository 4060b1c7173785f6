/** Agreement of a run's reviewers, in words and as a chart. */
import type { Agreement, ReviewAgreement } from '../../core/numbers/agreement.ts';
import { formatNumber, plural } from '../../core/reports/format.ts';
import { color, type Chart } from './chart.ts';

/** One sentence; with one reviewer it says so in place of a number. */
export function describeAgreement({ alpha, reviewers, units }: Agreement): string {
  const subject = 'Agreement between reviewers';
  if (reviewers === 0) return `${subject}: nothing has been reviewed yet`;
  if (reviewers === 1) return `${subject}: not measured, because there was one reviewer`;
  if (units === 0)
    return `${subject}: not measured, because no two of ${reviewers} reviewers answered the same question`;
  const over = `${plural(units, 'question')} that at least two of ${reviewers} reviewers answered`;
  if (alpha === null) return `${subject}: undefined, because all answers to ${over} are equal`;
  return `${subject}: Krippendorff’s alpha ${formatNumber(alpha)} over ${over} (1 is perfect, 0 is chance)`;
}

/** Nothing where no step has a number. */
export function agreementCharts(agreement: ReviewAgreement | null): Chart[] {
  const steps = agreement?.steps ?? [];
  if (steps.every(({ alpha }) => alpha === null)) return [];
  return [
    {
      section: 'outcomes',
      title: 'Agreement between reviewers',
      note: 'Krippendorff’s alpha of a step’s answers: 1 is perfect agreement, 0 is chance',
      x: steps.map(({ step }) => step),
      series: [{ label: 'alpha', values: steps.map(({ alpha }) => alpha), style: 'points', color: color(0) }],
      range: null,
    },
  ];
}
