/** Fields of the search; each writes its part of the address. */
import { useEffect, useState } from 'preact/hooks';
import { useQuery } from '../location.ts';
import { FILTER_NAMES } from './filters.ts';

/** Typing is over after this time. */
const TYPED_MS = 250;

export function FilterBar() {
  const [query, setQuery] = useQuery();
  const used = FILTER_NAMES.filter((name) => query.has(name) && name !== 'sort');
  return (
    <form class="filters card" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <TextFilter name="text" label="Text" placeholder="text in a message" isMain />
      <TextFilter name="tool" label="Tool" placeholder="name" />
      <ChoiceFilter name="failure" label="Failure" />
      <ChoiceFilter name="truncated" label="Truncated" />
      <RangeFilter label="Reward" names={['minReward', 'maxReward']} step="any" />
      <TextFilter name="metric" label="Metric" placeholder="moves<3" />
      <RangeFilter label="Steps" names={['fromStep', 'toStep']} step="1" />
      <TextFilter name="scenario" label="Scenario" placeholder="id" />
      <ChoiceFilter name="kind" label="Kind" />
      <button
        type="button"
        disabled={used.length === 0}
        onClick={() => setQuery(Object.fromEntries(used.map((name) => [name, null])))}
      >
        Clear{used.length > 0 ? ` ${used.length}` : ''}
      </button>
    </form>
  );
}

function TextFilter(props: { name: string; label: string; placeholder: string; isMain?: boolean }) {
  const { name, label, placeholder, isMain = false } = props;
  const [value, setValue] = useTyped(name);
  return (
    <label class={isMain ? 'field main' : 'field'}>
      <span>{label}</span>
      <input
        type={isMain ? 'search' : 'text'}
        data-search={isMain || undefined}
        placeholder={placeholder}
        value={value}
        onInput={({ currentTarget }) => setValue(currentTarget.value)}
      />
    </label>
  );
}

function RangeFilter({ label, names, step }: { label: string; names: readonly [string, string]; step: string }) {
  return (
    <fieldset class="field range">
      <legend>{label}</legend>
      <NumberField name={names[0]} label={`${label}, from`} placeholder="from" step={step} />
      <NumberField name={names[1]} label={`${label}, to`} placeholder="to" step={step} />
    </fieldset>
  );
}

function NumberField(props: { name: string; label: string; placeholder: string; step: string }) {
  const { name, label, placeholder, step } = props;
  const [value, setValue] = useTyped(name);
  return (
    <input
      type="number"
      step={step}
      aria-label={label}
      placeholder={placeholder}
      value={value}
      onInput={({ currentTarget }) => setValue(currentTarget.value)}
    />
  );
}

/** Values that the API takes, and what they are called; text alone is both. */
const CHOICES = {
  failure: [['any', 'any failure'], ['AgentFailed'], ['EngineFailed'], ['JudgeFailed']],
  truncated: [
    ['true', 'truncated'],
    ['false', 'not truncated'],
  ],
  kind: [
    ['train', 'training'],
    ['eval', 'evaluation'],
  ],
} as const satisfies Readonly<Record<string, readonly (readonly [value: string, label?: string])[]>>;

function ChoiceFilter({ name, label }: { name: keyof typeof CHOICES; label: string }) {
  const choices: readonly (readonly [value: string, label?: string])[] = CHOICES[name];
  const [query, setQuery] = useQuery();
  const value = query.get(name) ?? '';
  const isKnown = value === '' || choices.some(([choice]) => choice === value);
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}>
        <option value="">all</option>
        {!isKnown && <option value={value}>{value}</option>}
        {choices.map(([choice, text = choice]) => (
          <option key={choice} value={choice}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Typed text goes into the address when typing pauses. */
function useTyped(name: string): [string, (value: string) => void] {
  const [query, setQuery] = useQuery();
  const inAddress = query.get(name) ?? '';
  const [typed, setTyped] = useState<string | null>(null);
  useEffect(() => {
    if (typed === null) return undefined;
    const timer = setTimeout(() => {
      setQuery({ [name]: typed });
      setTyped(null);
    }, TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return [typed ?? inAddress, setTyped];
}
