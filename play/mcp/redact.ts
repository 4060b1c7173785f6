/** Secrets of an MCP server that stand in what it says: results are kept for ever. */
import type { ServerSpec } from './server-spec.ts';

export type Redact = (text: string) => string;

/** A shorter value is hardly a secret, and would stand in any text. */
const SHORTEST = 8;

export function redactor(spec: ServerSpec): Redact {
  const secrets = secretsOf(spec).filter(([, value]) => value.length >= SHORTEST);
  const found = secrets.flatMap(([name, value]) => [
    [name, value] as const,
    [name, JSON.stringify(value).slice(1, -1)] as const,
  ]);
  return (text) => found.reduce((redacted, [name, value]) => redacted.replaceAll(value, `<${name}>`), text);
}

function secretsOf(spec: ServerSpec): [name: string, value: string][] {
  const names = spec.kind === 'command' ? spec.passed : [spec.keyVariable ?? ''];
  const passed = names.map((name): [string, string] => [name, process.env[name] ?? '']);
  if (spec.kind === 'command') return passed;
  const headers = Object.entries(spec.headers);
  return [...passed, ...headers.map(([name, value]): [string, string] => [name, value.replace(/^Bearer /i, '')])];
}
