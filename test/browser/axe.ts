/** Accessibility of a page, by axe. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';

interface Violation {
  readonly impact: string;
  readonly id: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

/** Violations of any weight, in a line each. The page's policy refuses injected scripts, so axe comes by the debugger. */
export async function findViolations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = (await page.evaluate('axe.run().then(({ violations }) => violations)')) as Violation[];
  return violations.flatMap(({ impact, id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${impact} ${id} at ${target.join(' ')}: ${failureSummary}`),
  );
}
