/**
 * Writes chats for the warm start, a few mails of each queue with their label, one chat a line:
 * `node --import temper-rl/typescript examples/mail-router/write-chats.ts`.
 */
import { writeFileSync } from 'node:fs';
import { ask } from './agent.ts';
import { queues, trainingMails } from './mails.ts';

const CHATS_PER_QUEUE = 8;

const chats = queues.flatMap((queue) =>
  trainingMails
    .filter((mail) => mail.queue === queue && mail.id.endsWith('-0'))
    .slice(0, CHATS_PER_QUEUE)
    .map((mail) => ({ messages: [...ask(mail), { role: 'assistant', content: queue }] })),
);
writeFileSync('mail-chats.jsonl', chats.map((chat) => `${JSON.stringify(chat)}\n`).join(''));
console.log(`wrote mail-chats.jsonl: ${chats.length} chats`);
