/** Filters such as `winRate>=0.5`, of those who look for attempts. */

/** An operator and a number at the end of a text; all before it is a name. */
const CONDITION = /(>=|<=|!=|==?|>|<)\s*(-?[0-9.]+(?:e[+-]?[0-9]+)?)$/i;
const MOST_CHARACTERS = 200;

const OPERATORS: Readonly<Record<string, (value: number, bound: number) => boolean>> = {
  '>=': (value, bound) => value >= bound,
  '<=': (value, bound) => value <= bound,
  '>': (value, bound) => value > bound,
  '<': (value, bound) => value < bound,
  '=': (value, bound) => value === bound,
  '==': (value, bound) => value === bound,
  '!=': (value, bound) => value !== bound,
};

/** Null where it is none. Of an attempt, the rate of a metric that is true or false is 1 or 0. */
export function parseMetricFilter(
  text: string,
): ((metrics: Readonly<Record<string, number | undefined>>) => boolean) | null {
  const filter = text.length > MOST_CHARACTERS ? '' : text.trim();
  const found = CONDITION.exec(filter);
  const [, operator = '', bound = ''] = found ?? [];
  const name = filter.slice(0, found?.index ?? 0).trim();
  const compare = OPERATORS[operator];
  if (name === '' || compare === undefined || Number.isNaN(Number(bound))) return null;
  return (metrics) => {
    const value = metrics[name] ?? metrics[name.replace(/Rate$/, '')];
    return value !== undefined && compare(value, Number(bound));
  };
}
