/** A worker that is killed: appends to a journal, says so, and lives on. Arguments: prefix of the store, spool folder, journal. */
import { openS3Store } from '../../../store/bytes/s3-store.ts';
import { BUCKET } from '../../s3-server.ts';

const [prefix = '', spoolFolder = '', journal = ''] = process.argv.slice(2);
const store = await openS3Store({ bucket: BUCKET, prefix }, { spoolFolder });
const segments = await store.openJournal(journal);
for (const record of ['one ', 'two ', 'three']) segments.append(new TextEncoder().encode(record));
process.stdout.write('appended\n');
setInterval(() => undefined, 1000);
