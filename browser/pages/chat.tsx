/** Chat with one model, or with two side by side: checkpoints of the run, its base model, a hosted model. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { MessageView } from '../../views/api/attempt-views.ts';
import type { CheckpointRow } from '../../views/api/run-views.ts';
import type { ServerInfo } from '../../views/api/requests.ts';
import { LongText } from '../attempt/message.tsx';
import { useData } from '../data.ts';
import { useQuery } from '../location.ts';
import { Notice } from '../parts/small.tsx';
import { canSample } from './checkpoints.tsx';
import { useChatSide, type ChatSettings, type ChatSide } from './chat-pane.ts';
import { splitPrompt } from './prompt-parts.ts';
import { ScenarioStart } from './scenario-start.tsx';

export function ChatPage({ run }: { run: string }) {
  const checkpoints = useData<CheckpointRow[]>(`runs/${encodeURIComponent(run)}/checkpoints`).value ?? [];
  const info = useData<ServerInfo>('info').value;
  const [query, setQuery] = useQuery();
  const names = checkpoints.flatMap(({ name, weights }) => (name === null || !canSample(weights) ? [] : [name]));
  const newest = checkpoints
    .filter(({ name, weights }) => name !== null && canSample(weights))
    .toSorted((a, b) => b.step - a.step)[0]?.name;
  const left = query.get('left') ?? newest ?? '';
  const right = query.get('right') ?? '';
  if (info !== null && (info.isReadOnly || info.isExport))
    return (
      <>
        <h1>Chat</h1>
        <Notice level="warn">
          Chat is off: {info.isExport ? 'this is a static export' : 'temper ui runs with --read-only'}.
        </Notice>
      </>
    );
  return (
    <>
      <header class="masthead">
        <h1>Chat</h1>
        <span class="dim">
          Answers come from this project’s GPU worker, which a live run then shares; a hosted model is billed by its
          provider. Nothing is stored.
        </span>
      </header>
      <datalist id="chat-models">
        {[...names, `base:${run}`].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <Desk run={run} left={left} right={right} onModel={(side, model) => setQuery({ [side]: model })} />
    </>
  );
}

interface DeskProps {
  readonly run: string;
  readonly left: string;
  /** Empty: one chat alone. */
  readonly right: string;
  readonly onModel: (side: 'left' | 'right', model: string | null) => void;
}

function Desk({ run, left, right, onModel }: DeskProps) {
  const [first, second] = [useChatSide(), useChatSide()];
  const sides = [first, second];
  const [text, setText] = useState('');
  const [settings, setSettings] = useState<ChatSettings>({ system: '', temperature: 1, maxTokens: 512 });
  const begin = (prompt: readonly MessageView[]): void => {
    const { system, said, text: asked } = splitPrompt(prompt);
    setSettings({ ...settings, system });
    sides.forEach((side) => side.begin(said));
    setText(asked);
  };
  const isAnswering = first.waiting !== null || second.waiting !== null;
  const send = (): void => {
    if (text.trim() === '' || isAnswering || left === '') return;
    void first.send(left, text, settings);
    if (right !== '') void second.send(right, text, settings);
    setText('');
  };
  return (
    <>
      <Settings settings={settings} onChange={setSettings}>
        <ScenarioStart run={run} onStart={begin} />
      </Settings>
      <div class="chats">
        <Pane side={first} model={left} label="Model" onModel={(model) => onModel('left', model)} />
        {right !== '' && (
          <Pane side={second} model={right} label="Second model" onModel={(model) => onModel('right', model)} />
        )}
      </div>
      <ChatForm
        text={text}
        onText={setText}
        isAnswering={isAnswering}
        isOff={left === ''}
        onSend={send}
        onStop={() => sides.forEach((side) => side.stop())}
        onClear={() => sides.forEach((side) => side.clear())}
      >
        <button
          type="button"
          onClick={() => {
            second.clear();
            onModel('right', right === '' ? `base:${run}` : null);
          }}
        >
          {right === '' ? 'Add a second model' : 'Remove the second model'}
        </button>
      </ChatForm>
    </>
  );
}

interface ChatFormProps {
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly isAnswering: boolean;
  readonly isOff: boolean;
  readonly onSend: () => void;
  readonly onStop: () => void;
  readonly onClear: () => void;
  readonly children: ComponentChildren;
}

function ChatForm({ text, onText, isAnswering, isOff, onSend, onStop, onClear, children }: ChatFormProps) {
  return (
    <form
      class="chat-input"
      onSubmit={(event) => {
        event.preventDefault();
        onSend();
      }}
    >
      <textarea
        rows={2}
        value={text}
        aria-label="Message"
        placeholder="Write a message; Enter sends it"
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          onSend();
        }}
      />
      {isAnswering ? (
        // The second click of a double click on "Send" comes here.
        <button type="button" onClick={({ detail }) => detail < 2 && onStop()}>
          Stop
        </button>
      ) : (
        <button type="submit" class="primary" disabled={isOff}>
          Send
        </button>
      )}
      <button type="button" onClick={onClear}>
        Clear
      </button>
      {children}
    </form>
  );
}

interface SettingsProps {
  readonly settings: ChatSettings;
  readonly onChange: (settings: ChatSettings) => void;
  readonly children: ComponentChildren;
}

function Settings({ settings, onChange, children }: SettingsProps) {
  const number = (text: string): number | null =>
    text.trim() === '' || Number.isNaN(Number(text)) ? null : Number(text);
  return (
    <div class="card chat-settings">
      {children}
      <label>
        <span class="note">System prompt</span>
        <textarea
          rows={Math.min(6, settings.system.split('\n').length)}
          value={settings.system}
          onInput={(event) => onChange({ ...settings, system: event.currentTarget.value })}
        />
      </label>
      <label>
        <span class="note">Temperature</span>
        <input
          type="number"
          min="0"
          max="2"
          step="0.1"
          value={settings.temperature ?? ''}
          onInput={(event) => onChange({ ...settings, temperature: number(event.currentTarget.value) })}
        />
      </label>
      <label>
        <span class="note">Token limit</span>
        <input
          type="number"
          min="1"
          value={settings.maxTokens ?? ''}
          onInput={(event) => onChange({ ...settings, maxTokens: number(event.currentTarget.value) })}
        />
      </label>
    </div>
  );
}

interface PaneProps {
  readonly side: ChatSide;
  readonly model: string;
  readonly label: string;
  readonly onModel: (model: string) => void;
}

function Pane({ side: { said, waiting }, model, label, onModel }: PaneProps) {
  const log = useRef<HTMLDivElement>(null);
  useEffect(() => log.current?.scrollTo({ top: log.current.scrollHeight }), [said]);
  return (
    <section class="card chat" aria-label={label}>
      <header>
        <input
          list="chat-models"
          aria-label={label}
          value={model}
          placeholder="a checkpoint such as demo@12, base:demo, or openai/gpt-5-mini"
          onChange={(event) => onModel(event.currentTarget.value.trim())}
        />
      </header>
      <div class="chat-log" ref={log} tabIndex={0} role="log" aria-label={`Conversation with ${model}`}>
        {said.map(({ role, content, note, isError }, index) => (
          <div key={index} class={role === 'assistant' ? 'message answer' : 'message'}>
            <span class="role">{role}</span>
            <div class="said">
              {content !== '' && <LongText text={content} />}
              {note !== null && note !== '' && <p class={isError ? 'wrong' : 'note'}>{note}</p>}
            </div>
          </div>
        ))}
        {waiting !== null && <p class="note">{waiting} …</p>}
      </div>
    </section>
  );
}
