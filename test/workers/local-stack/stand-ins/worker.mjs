// Stands in for the TypeScript worker: is ready at once, ends with its leash.
console.log(JSON.stringify({ level: 'info', msg: 'worker ready', address: process.env.TEMPORAL_ADDRESS }));
process.stdin.resume().on('close', () => process.exit(0));
