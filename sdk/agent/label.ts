import { LABEL_HEADER } from '../../play/dialects/answer-request.ts';

/**
 * Tells identical calls made in parallel apart, so that a repetition gives each its own answer:
 * `openai.chat.completions.create(body, label('second opinion'))`.
 */
export function label(name: string): { headers: Record<string, string> } {
  return { headers: { [LABEL_HEADER]: encodeURIComponent(name) } };
}
