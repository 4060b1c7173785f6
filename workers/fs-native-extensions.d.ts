/** The package ships no types; these are the two calls used here. */
declare module 'fs-native-extensions' {
  /** Locks a whole open file for this process; false if another process holds it. Released when the process ends. */
  export function tryLock(fd: number): boolean;
  export function unlock(fd: number): void;
}
