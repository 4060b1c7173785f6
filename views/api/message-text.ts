import type { MessageView } from './attempt-views.ts';

/** All of a message as one text, calls in source form: `search({"query": "budget"})`. */
export function messageText({ text, toolCalls }: MessageView): string {
  const calls = toolCalls.map((call) => (call.name === '' ? call.arguments : `${call.name}(${call.arguments})`));
  return [text, ...calls].filter((part) => part !== '').join('\n');
}
