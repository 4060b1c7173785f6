/** Accessibility of a page, by axe. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';

interface Violation {
  readonly impact: string;
  readonly id: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

/** Off by themselves, and weighed by Lighthouse. */
const MORE_RULES = [
  'identical-links-same-purpose',
  'label-content-name-mismatch',
  'table-fake-caption',
  'target-size',
  'td-has-header',
];

/** Colours are what is left to be checked of a page that was checked in another theme. */
export type Rules = 'all' | 'colors';

const OPTIONS: Readonly<Record<Rules, object>> = {
  all: { resultTypes: ['violations'], rules: Object.fromEntries(MORE_RULES.map((rule) => [rule, { enabled: true }])) },
  colors: { resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block'] },
};

/** Violations of any weight, in a line each. The page's policy refuses injected scripts, so axe comes by the debugger. */
export async function findViolations(page: Page, rules: Rules = 'all'): Promise<string[]> {
  if (await page.evaluate('!("axe" in globalThis)')) await page.evaluate(axe.source);
  const run = `axe.run(${JSON.stringify(OPTIONS[rules])}).then(({ violations }) => violations)`;
  const violations = (await page.evaluate(run)) as Violation[];
  return violations.flatMap(({ impact, id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${impact} ${id} at ${target.join(' ')}: ${failureSummary}`),
  );
}
