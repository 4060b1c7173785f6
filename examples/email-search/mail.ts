/** Parts of both editions. */

export interface Mail {
  readonly id: number;
  /** Day and minute, `2024-03-04 09:12`: later mails sort after earlier ones. */
  readonly date: string;
  readonly from: string;
  readonly to: string;
  readonly subject: string;
  readonly body: string;
}

export interface Question {
  readonly text: string;
  /** Known to the generator, so that nobody has to judge. */
  readonly answer: string;
  /** Ids of the mails that tell it. */
  readonly sources: readonly number[];
}

export interface Mailbox {
  readonly mails: readonly Mail[];
  readonly questions: readonly Question[];
}
