/** Mails to a shop's support: sentences to train on and others that are held out, each with several senders and orders. */
export const queues = ['billing', 'shipping', 'returns', 'account', 'technical'] as const;
export type Queue = (typeof queues)[number];

export interface Mail {
  readonly id: string;
  readonly text: string;
  readonly queue: Queue;
}

const training: Record<Queue, readonly string[]> = {
  billing: [
    'You charged my credit card twice for order {order}.',
    'I need an invoice with our VAT number for order {order}.',
    'The discount code was not taken off the total price.',
    'My card was declined when I tried to pay.',
    'Why is this month’s bill higher than the last one?',
    'I paid by bank transfer, but the payment is still open.',
    'The invoice shows the wrong company name.',
    'Can I pay for order {order} in three instalments?',
    'There is a fee on my bill that nobody told me about.',
    'Please send me the receipt for my last payment.',
    'Do you accept PayPal, or only credit cards?',
    'I was billed for a subscription that I cancelled.',
  ],
  shipping: [
    'Where is my parcel? Order {order} should have come on Monday.',
    'The tracking number for {order} does not show anything.',
    'Can you deliver to another street? I am moving.',
    'The courier left my package with a neighbour I do not know.',
    'When will order {order} be delivered?',
    'The delivery is a week late by now.',
    'Do you ship to Norway, and how many days does it take?',
    'The driver says that nobody was at home, but I was.',
    'Can order {order} be sent by express?',
    'My package has been at the depot for five days.',
    'Only one of the two parcels has arrived.',
    'Please hold the shipment until I am back from holiday.',
  ],
  returns: [
    'I want to send the shoes from order {order} back.',
    'The jacket is too small. Can I exchange it for a larger one?',
    'Please send me a return label for order {order}.',
    'The wrong colour came, I would like the blue one instead.',
    'How many days do I have to return a gift?',
    'The lamp was broken in the box, I want my money back.',
    'I sent the trousers back. When do I get the refund?',
    'Can I bring order {order} back to one of your stores?',
    'I changed my mind and do not want to keep the chair.',
    'Who pays for the postage if I send it back?',
    'The dress does not fit, please swap it for a size 40.',
    'May I return a pair of headphones that I have opened?',
  ],
  account: [
    'I forgot my password and need a new one.',
    'Please change the email address of my profile.',
    'I cannot log in, it says that the user is unknown.',
    'Please delete my account and all of my data.',
    'How do I add a colleague as a second user?',
    'My name is spelled wrong in my profile.',
    'Someone else has signed in with my username.',
    'The code for the two-step login never comes.',
    'I have two accounts and would like to merge them.',
    'Please take me off your newsletter list.',
    'My account was locked after three wrong passwords.',
    'How do I change the phone number that I registered with?',
  ],
  technical: [
    'The app crashes as soon as I open it.',
    'I get error {order} on the upload page.',
    'Your website is very slow in my browser today.',
    'The export button does nothing when I click on it.',
    'The page stays white on my phone.',
    'After the update, the search finds nothing any more.',
    'Your API answers with status 500.',
    'The video on the start page does not play.',
    'The app drains my battery in two hours.',
    'Pictures do not load, I only see grey boxes.',
    'The menu is cut off on small screens.',
    'The printer plug-in freezes my computer.',
  ],
};

const heldOut: Record<Queue, readonly string[]> = {
  billing: [
    'The money for order {order} left my bank account two times.',
    'I have not received an invoice yet.',
    'The amount on the receipt is not what I agreed to pay.',
    'Which credit cards can I use to pay?',
    'Why did you charge me 20 euros more than the price on the page?',
    'Our bookkeeping needs a corrected invoice for {order}.',
    'My voucher was not counted on the bill.',
    'Please stop charging me for the monthly subscription.',
  ],
  shipping: [
    'Order {order} has not arrived, although you sent it ten days ago.',
    'Has my package left your warehouse yet?',
    'The parcel went to my old address.',
    'Can the courier come in the evening instead?',
    'How long does delivery to Spain take?',
    'The tracking page has said “in transit” since Friday.',
    'Half of my delivery is missing.',
    'I would like to pick up parcel {order} at the depot.',
  ],
  returns: [
    'These boots do not fit, I want to return them.',
    'Can I get a refund for order {order}?',
    'How do I exchange a sweater for another size?',
    'The vase arrived with a crack, please take it back.',
    'I lost the return label.',
    'Did you receive the coat that I sent back?',
    'I do not like the curtains, can I give them back?',
    'You sent me the wrong model, I want to swap it.',
  ],
  account: [
    'My password does not work any more.',
    'I want to close my account.',
    'How can I change my username?',
    'I no longer have the email address that I log in with.',
    'Please update the last name in my profile, I got married.',
    'I think that a stranger uses my account.',
    'How do I turn on the two-step login?',
    'Can my wife and I share one user profile?',
  ],
  technical: [
    'The app shows a blank screen after it starts.',
    'The search fails with error {order}.',
    'Your site freezes in my browser.',
    'The save button does not react.',
    'Since the last update, the app closes by itself.',
    'The pictures on your website are not shown.',
    'The download of the manual stops at 90 percent.',
    'Your API is down, all requests time out.',
  ],
};

const NAMES = ['Ana', 'Ben', 'Carla', 'Dev', 'Emil', 'Fay', 'Gita', 'Hugo', 'Ines'];
const COPIES = 3;

export const trainingMails = write('training', training);
export const heldOutMails = write('held-out', heldOut);

/** Every sentence in three mails: the queues get equally many. */
function write(kind: string, sentences: Record<Queue, readonly string[]>): Mail[] {
  return queues.flatMap((queue, place) =>
    sentences[queue].flatMap((sentence, index) =>
      Array.from({ length: COPIES }, (_, copy) => {
        const order = String(1000 + ((place * 1307 + index * 371 + copy * 2113) % 9000));
        const name = NAMES[(place + index + 4 * copy) % NAMES.length]!;
        const mail = `${sentence.replace('{order}', order)}\n${name}`;
        return { id: `${kind}-${queue}-${index}-${copy}`, text: mail, queue };
      }),
    ),
  );
}
