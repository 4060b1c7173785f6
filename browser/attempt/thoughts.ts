/** A model's text in parts: what it said, and what it thought between `<think>` and `</think>`. */

export interface SaidPart {
  readonly kind: 'text' | 'thought';
  readonly text: string;
}

const OPEN = /<(think|thinking|reasoning)>/i;

/** A chat template may have opened the thought in the prompt: then the text begins inside it. */
export function splitThoughts(text: string): readonly SaidPart[] {
  const parts: SaidPart[] = [];
  let rest = text;
  const end = /<\/(?:think|thinking|reasoning)>/i.exec(rest);
  const start = OPEN.exec(rest);
  if (end !== null && (start === null || start.index > end.index)) {
    parts.push({ kind: 'thought', text: rest.slice(0, end.index) });
    rest = rest.slice(end.index + end[0].length);
  }
  for (let open = OPEN.exec(rest); open !== null; open = OPEN.exec(rest)) {
    parts.push({ kind: 'text', text: rest.slice(0, open.index) });
    rest = rest.slice(open.index + open[0].length);
    const close = `</${open[1]!.toLowerCase()}>`;
    const at = rest.toLowerCase().indexOf(close);
    parts.push({ kind: 'thought', text: at < 0 ? rest : rest.slice(0, at) });
    rest = at < 0 ? '' : rest.slice(at + close.length);
  }
  parts.push({ kind: 'text', text: rest });
  return parts.filter((part) => part.text.trim() !== '');
}
