/** The tables of docs/commands.md that list operations, and that of `temper --help`, from definitions (`npm run contract`). */
import { fileURLToPath } from 'node:url';
import { listCommands } from '../../cli/commands.ts';
import { OPERATIONS } from '../../operations/index.ts';
import { fieldsOf, isAgentAction, isRemoteAction, type Operation } from '../../operations/operation.ts';
import { literal } from './generate-flags.ts';

export const COMMAND_TABLE_FILE = fileURLToPath(new URL('../../cli/command-table.ts', import.meta.url));

const ALL = Object.entries<Operation>(OPERATIONS).toSorted(([a], [b]) => (a < b ? -1 : 1));
const MARKER = /(<!-- operations: ([^>]+) -->\n).*?\n(?=\n)/gs;
/** A table with this name has the operations that no other one names. */
const OTHERS = 'others';

const nounOf = ({ name }: Operation): string => name.split(' ')[0]!;

/** The page with its tables as they must be: between `<!-- operations: NOUN… -->` and the next empty line. */
export function generateOperations(page: string): string {
  const named = [...page.matchAll(MARKER)].flatMap(([, , nouns = '']) => nouns.split(' '));
  return page.replaceAll(MARKER, (_, marker: string, nouns: string) => {
    const isIn = (noun: string) => (nouns === OTHERS ? !named.includes(noun) : nouns.split(' ').includes(noun));
    const rows = ALL.filter(([, operation]) => isIn(nounOf(operation))).map(rowOf);
    return `${marker}| command | function | also | what it does |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
  });
}

function rowOf([key, operation]: readonly [string, Operation]): string {
  const words = fieldsOf(operation).flatMap((field) => {
    const placeholder = 'placeholder' in field ? field.placeholder : '';
    if (field.flag !== null) return field.isRequired ? [`--${field.flag} ${placeholder}`] : [];
    const repeated = field.kind === 'texts' ? `${placeholder}…` : placeholder;
    return [field.isRequired ? repeated : `[${repeated}]`];
  });
  const command = ['temper', operation.name, ...words].join(' ');
  const also = isAgentAction(operation) ? 'UI, MCP' : isRemoteAction(operation) ? 'UI' : '–';
  return `| \`${command}\` | \`${key}\` | ${also} | ${operation.summary} |`;
}

export async function generateCommandTable(): Promise<string> {
  const rows = (await listCommands()).map(({ group, name, summary }) => `  ${literal({ group, name, summary })},`);
  return `/** Generated from the definitions of commands by test/contract/generate-operations.ts; a test compares. Do not edit. */
export const COMMAND_TABLE = [
${rows.join('\n')}
] as const;
`;
}
