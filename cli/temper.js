#!/usr/bin/env node
import { existsSync } from 'node:fs';

// Before anything else is loaded: an older Node would fail at the first thing that it does not have.
const found = process.versions.node;
const [major = 0, minor = 0] = found.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`temper: Node must be 20.19 or newer, got ${found}; install a newer one from https://nodejs.org`);
  process.exit(2);
}

// The sources of a clone are TypeScript, which Node 20 cannot load without tsx. An installed package is compiled.
const isSource = existsSync(new URL('main.ts', import.meta.url));
if (isSource) await import('../workers/typescript.js');
const { main } = await import(isSource ? './main.ts' : './main.js');
process.exitCode = await main(process.argv.slice(2));
// A library that left a handle open must not keep a finished command alive.
setTimeout(() => process.exit(), 2000).unref();
