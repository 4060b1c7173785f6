import { TemperError } from '../../../core/contract/failures.ts';

export async function failureOf(doing: Promise<unknown>): Promise<TemperError> {
  const error: unknown = await doing.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (error instanceof TemperError) return error;
  throw new Error(`expected a TemperError, got ${String(error)}`);
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (content: Uint8Array | null): string | null => content && new TextDecoder().decode(content);
