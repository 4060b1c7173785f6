/** The full edition: a real model answers customers in words, and people compare the answers. */
import { defineAgent, review } from 'temper-rl';

interface Ticket {
  readonly id: string;
  readonly ticket: string;
}

const POLICY = [
  'You are the support desk of a shop for outdoor clothing.',
  'Parcels take 3 to 5 days. Damaged goods are replaced or refunded, as the customer likes. Invoices can be corrected for 30 days.',
  'Answer in at most four sentences. Promise nothing that the policy does not say.',
].join(' ');

const TICKETS = {
  late: 'My parcel was due on Friday. I leave for the mountains on Sunday and the jacket is still not here!',
  torn: 'The left sleeve of the jacket was torn when I unpacked it. What now?',
  twice: 'You charged me twice for order A-1042.',
  size: 'The trousers are too small. Can I have them one size larger before the weekend?',
  name: 'The invoice has the name of my old company on it.',
  rude: 'Third mail, no answer. Is anybody there? I want my money back.',
  thanks: 'The boots are great. How do I care for them?',
  lost: 'The tracking page says delivered, but I never got the parcel.',
};

export default defineAgent<Ticket>({
  name: 'support',
  scenarios: Object.entries(TICKETS).map(([id, ticket]) => ({ id, ticket })),
  reward: review({ pairwise: true, reviewers: 2, question: 'Which reply would you rather get?' }),

  async rollout({ scenario, openai, model }) {
    const messages = [
      { role: 'system' as const, content: POLICY },
      { role: 'user' as const, content: scenario.ticket },
    ];
    await openai.chat.completions.create({ model, messages, max_tokens: 300 });
  },
});
