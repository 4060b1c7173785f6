/** What a `position.json` says without what differs between equal runs: their names, and the measured costs. */
export function untimedPosition(bytes: Buffer): Buffer {
  const { costs: _costs, ...position } = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>;
  const own = (position['checkpoint'] as { run: string }).run;
  return Buffer.from(JSON.stringify(position, (key, value: unknown) => (key === 'run' && value === own ? '' : value)));
}

/** Files that hold nothing but measured times are left out of comparisons, too. */
export const isPosition = (file: string): boolean => file.endsWith('/position.json');
