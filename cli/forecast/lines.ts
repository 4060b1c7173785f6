/** An estimate as lines, each number as a range. */
import type { RunConfig } from '../../core/contract/contract.ts';
import { formatUsd } from '../../core/rules/judge-spending.ts';
import { LIST_PRICES_OF } from '../../core/numbers/prices.ts';
import { supervisedSteps } from '../../core/rules/supervised.ts';
import { formatDuration, plural } from '../../core/reports/format.ts';
import type { Estimated } from './estimate-run.ts';
import { sumSpreads, type Spread } from './forecast.ts';

export function estimateLines(config: RunConfig, { basis, forecast, price }: Estimated): string[] {
  const { groupsPerStep, groupSize } = config;
  const size = `${plural(groupsPerStep, 'group')} of ${plural(groupSize, 'attempt')}`;
  const { judge, hosted } = forecast;
  const rows: (readonly [string, string] | null)[] = [
    ['estimate', `${plural(forecast.steps, 'step')} of ${size}, ${plural(forecast.evaluations, 'evaluation')}`],
    ['measured', `${plural(basis.measured.steps.length, 'step')} of the run ${basis.run}`],
    ['prompts', `${tokens(forecast.promptTokens)} tokens, ${tokens(forecast.cachedPromptTokens)} of them cached`],
    ['samples', `${tokens(forecast.sampledTokens)} tokens`],
    ['training', `${tokens(forecast.trainingTokens)} tokens`],
    judge && ['judge', `${config.judge}: ${asked(judge)}${describeSource(price)}`],
    hosted && ['hosted', asked(hosted)],
    ['time', about(forecast.seconds, formatDuration)],
    ['cost', describeCost(forecast)],
    supervisedSteps(config) === 0
      ? null
      : ['note', `the ${plural(supervisedSteps(config), 'supervised step')} of the run are not in the estimate`],
  ];
  return rows.flatMap((row) => (row === null ? [] : [`${row[0].padEnd(9)} ${row[1]}`]));
}

/** One line, before a run that costs money. */
export function summariseEstimate({ basis, forecast }: Estimated): string {
  return `estimate: ${about(forecast.seconds, formatDuration)}, ${describeCost(forecast)} (measured on ${basis.run})`;
}

function asked({
  promptTokens,
  completionTokens,
}: {
  readonly promptTokens: Spread;
  readonly completionTokens: Spread;
}) {
  return `${tokens(promptTokens)} tokens of prompts, ${tokens(completionTokens)} of answers`;
}

function describeSource(price: Estimated['price']): string {
  if (price === null) return '';
  const { usdPerMillionInput, usdPerMillionOutput } = price;
  const source = price.isListed ? `, list price of ${LIST_PRICES_OF}` : '';
  return ` ($${usdPerMillionInput} and $${usdPerMillionOutput} per million${source})`;
}

const CAUSES = { gpu: 'hardware', judge: 'judge', hosted: 'hosted models' } as const;

function describeCost({ usd, unpriced }: Estimated['forecast']): string {
  const known = Object.entries(usd) as [keyof typeof CAUSES, Spread][];
  const without = [
    ...(usd.gpu === undefined ? ['hardware (pass --gpu-usd-per-hour)'] : []),
    ...unpriced.map((model) => `${model} (unknown price; see prices in temporal.config.ts)`),
  ];
  const note = without.length === 0 ? '' : `, without ${without.join(' and ')}`;
  if (known.length === 0) return `unknown${note}`;
  const parts = known.map(([cause, range]) => `${CAUSES[cause]} ${dollars(range)}`);
  const total = sumSpreads(known.map(([, range]) => range));
  return `${dollars(total)}${parts.length > 1 ? `: ${parts.join(', ')}` : ''}${note}`;
}

function tokens(range: Spread): string {
  return about(range, (count) => Math.round(count).toLocaleString('en'));
}

function dollars(range: Spread): string {
  return about(range, (usd) => `$${formatUsd(usd)}`);
}

/** `85,819 (65,135 to 106,502)`. */
function about({ low, expected, high }: Spread, show: (value: number) => string): string {
  const [least, usual, most] = [show(low), show(expected), show(high)];
  return least === most ? usual : `${usual} (${least} to ${most})`;
}
