// Stands in for the TypeScript worker: is ready at once, says which agents it would play, ends with its leash.
import { writeSync } from 'node:fs';

const { agents } = JSON.parse(process.argv[2]);
writeSync(3, 'ready\n');
console.log(JSON.stringify({ level: 'info', msg: 'worker ready', agents }));
process.stdin.resume().on('close', () => process.exit(0));
