/** A value as an error message shows it. */
export function showValue(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value)).slice(0, 100);
}
