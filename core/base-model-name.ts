/** A base model's name where room is short: of a commit, what git shows of it. */
export function shortModelName(name: string): string {
  return name.replace(/@([0-9a-f]{7})[0-9a-f]{33}$/, '@$1');
}
