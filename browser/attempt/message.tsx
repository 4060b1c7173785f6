/** A message of a conversation. Everything in it is text: nothing that a model wrote becomes markup. */
import { useState } from 'preact/hooks';
import { plural } from '../../core/reports/format.ts';
import type { MessageView, ToolCallView } from '../../views/api/attempt-views.ts';
import { indentJson } from './json-text.ts';
import { splitThoughts } from './thoughts.ts';

export function Message({ message, isAnswer = false }: { message: MessageView; isAnswer?: boolean }) {
  const isResult = message.role === 'tool' || message.role === 'function';
  return (
    <div class={isAnswer ? 'message answer' : 'message'}>
      <span class="role">{message.role}</span>
      <div class="said">
        {message.thoughts !== undefined && <Thought text={message.thoughts} />}
        {isResult ? (
          <ToolResult text={message.text} />
        ) : (
          <Said text={message.text} isAlone={message.toolCalls.length === 0} />
        )}
        {message.toolCalls.map((call, index) => (
          <ToolCall key={index} call={call} />
        ))}
        {message.cut > 0 && <p class="note">{plural(message.cut, 'more character')} in the raw record</p>}
      </div>
    </div>
  );
}

function Said({ text, isAlone }: { text: string; isAlone: boolean }) {
  const parts = splitThoughts(text);
  if (parts.length === 0)
    return isAlone ? <p class="no-text dim">{text === '' ? '(empty)' : '(white space alone)'}</p> : null;
  return (
    <>
      {parts.map(({ kind, text: part }, index) =>
        kind === 'text' ? <LongText key={index} text={part} /> : <Thought key={index} text={part} />,
      )}
    </>
  );
}

function Thought({ text }: { text: string }) {
  return (
    <details class="thought">
      <summary>thought, {plural(text.length, 'character')}</summary>
      <LongText text={text} />
    </details>
  );
}

function ToolCall({ call }: { call: ToolCallView }) {
  return (
    <div class="tool-call">
      <p class="tool-name">
        <span class="note">{call.name === '' ? 'calls in a form of its own' : 'calls'}</span> <bdi>{call.name}</bdi>
      </p>
      <LongText text={indentJson(call.arguments) ?? call.arguments} />
    </div>
  );
}

/** Results longer than this are folded. */
const SHORT_RESULT = 600;

function ToolResult({ text }: { text: string }) {
  const shown = indentJson(text) ?? text;
  if (shown.length <= SHORT_RESULT) return <LongText text={shown} />;
  return (
    <details class="thought">
      <summary>
        {plural(text.length, 'character')}: <bdi>{text.slice(0, 80)}</bdi>
      </summary>
      <LongText text={shown} />
    </details>
  );
}

const FIRST_CHARACTERS = 6000;
const MORE_CHARACTERS = 100_000;

/** A text of any size: a browser takes seconds to lay out a line of megabytes. */
export function LongText({ text, className = '' }: { text: string; className?: string }) {
  const [most, setMost] = useState(FIRST_CHARACTERS);
  const hidden = text.length - most;
  return (
    <>
      <pre class={`text ${className}`} dir="auto">
        {hidden > 0 ? text.slice(0, most) : text}
      </pre>
      {hidden > 0 && (
        <button type="button" class="more" onClick={() => setMost(most + MORE_CHARACTERS)}>
          Show {plural(Math.min(hidden, MORE_CHARACTERS), 'more character')} of {hidden}
        </button>
      )}
    </>
  );
}
