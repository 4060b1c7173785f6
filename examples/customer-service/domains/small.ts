/** Domains of the small edition: one table, and a rule for each wish and each state of a row. */
import type { Domain, ServiceTool, Situation } from '../domain.ts';

interface Rules {
  readonly name: string;
  /** The thing that a customer calls about. */
  readonly row: string;
  /** Words of four letters: each letter then has one place, where two layers can find it. */
  readonly states: readonly string[];
  /** Tools that change a row. */
  readonly acts: readonly string[];
  /** For each wish of four letters, what is to be done in each of the states: one of the acts, `human`, or `no`. */
  readonly wishes: Readonly<Record<string, readonly string[]>>;
}

export const smallRetail = smallDomain({
  name: 'small-retail',
  row: 'order',
  states: ['open', 'sent', 'here'],
  acts: ['cancel', 'return', 'swap', 'move'],
  wishes: {
    back: ['cancel', 'human', 'return'],
    swap: ['swap', 'no', 'swap'],
    move: ['move', 'human', 'no'],
  },
});

export const smallAirline = smallDomain({
  name: 'small-airline',
  row: 'ticket',
  states: ['lite', 'plus', 'gone'],
  acts: ['cancel', 'change', 'luggage'],
  wishes: {
    back: ['human', 'cancel', 'no'],
    move: ['no', 'change', 'human'],
    bags: ['luggage', 'luggage', 'no'],
  },
});

function smallDomain({ name, row, states, acts, wishes }: Rules): Domain {
  const tool = (description: string, act: Pick<ServiceTool, 'show' | 'effects' | 'ends'>): ServiceTool => {
    return { description, arguments: { [row]: { row: 'rows' } }, ...act };
  };
  const change = (act: string) => tool(`Does it: ${act}.`, { effects: [{ set: `${row}.state`, to: `after ${act}` }] });
  const transfer = [{ insert: 'transfers', row: { row: `{${row}}` } }];
  return {
    name,
    policy: Object.entries(wishes)
      .map(([wish, rules]) => `${wish}: ${rules.map((rule, index) => `${states[index]} ${rule}`).join(', ')}`)
      .join('\n'),
    tables: {
      rows: { rows: 9, id: '@@', columns: { state: { oneOf: states } } },
      transfers: { rows: 0, id: 'T#', columns: { row: { ref: 'rows' } } },
    },
    tools: {
      look: tool(`Shows the ${row}.`, { show: row }),
      ...Object.fromEntries(acts.map((act) => [act, change(act)])),
      human: tool('Transfers the customer to a human.', { effects: transfer, ends: true }),
    },
    situations: Object.entries(wishes).flatMap(([wish, rules]) =>
      rules.map((rule, index) => smallSituation(row, wish, states[index]!, rule)),
    ),
  };
}

function smallSituation(row: string, wish: string, state: string, rule: string): Situation {
  const isRefused = rule === 'no';
  return {
    name: `${wish}-${state}`,
    draw: { [row]: { from: 'rows', where: [{ at: `${row}.state`, is: [state] }] } },
    says: [wish],
    wants: `You want: ${wish} {${row}}.`,
    calls: isRefused ? [] : [{ tool: rule, arguments: { [row]: `{${row}}` } }],
    statements: isRefused ? ['no'] : [],
  };
}
