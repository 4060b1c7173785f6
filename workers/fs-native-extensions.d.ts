/** The package ships no types; these are the two calls used here. */
declare module 'fs-native-extensions' {
  /** Locks a whole open file for this process alone; false where another process holds it. Freed when the process dies. */
  export function tryLock(fd: number): boolean;
  export function unlock(fd: number): void;
}
