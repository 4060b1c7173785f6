/** Names in a template: `{run}` and `{step}` of `{run}@{step}`. */
type NamesIn<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

/** A template of `wire-constants.ts` with its values, as Python's `str.format` fills it. */
export function fillTemplate<T extends string>(
  template: T,
  values: Readonly<Record<NamesIn<T>, string | number>>,
): string {
  return template.replace(/\{(\w+)\}/g, (_, name: NamesIn<T>) => String(values[name]));
}
