/** Building blocks of the contract's types. */
import { z } from 'zod';

import { NAME_PATTERN, ROLE_NAME_PATTERN } from './wire-constants.ts';

export const name = z.string().regex(NAME_PATTERN);
/** Name of a role or of a policy. */
export const roleName = z.string().regex(ROLE_NAME_PATTERN);
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
export const count = z.int().min(0);
export const positive = z.int().min(1);
/** A name of this host, or OWNER/NAME@COMMIT of the Hugging Face hub; never a path: no part begins with a dot. */
export const BASE_MODEL_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*(@[0-9a-f]{40})?$/;
export const baseModel = z.string().max(200).regex(BASE_MODEL_PATTERN);
/** Key of content-addressed bytes in a store. */
const blobName = z.string().regex(/^blobs\/[0-9a-f]{64}$/);
/** Content-addressed bytes of the store; `key` is relative to the store's root. */
export const BlobRef = z.strictObject({ key: blobName, sha256, bytes: count }).meta({ id: 'BlobRef' });
export type BlobRef = z.infer<typeof BlobRef>;
/** The two files of a PEFT adapter from elsewhere, as they are. */
export const StartAdapter = z.strictObject({ weights: BlobRef, config: BlobRef }).meta({ id: 'StartAdapter' });
export type StartAdapter = z.infer<typeof StartAdapter>;
/** A group of a step, by the hashes of its two files. */
export const GroupRef = z
  .strictObject({
    group: count,
    rolloutsSha256: sha256,
    judgedSha256: sha256,
    /** Place of a group that was dealt to an earlier step, or on an earlier branch. Absent: those of the trained step. */
    step: positive.optional(),
    branch: count.optional(),
  })
  .meta({ id: 'GroupRef' });
export type GroupRef = z.infer<typeof GroupRef>;
/** Variables of a chat template. */
export const templateKwargs = z.record(z.string().max(64), z.union([z.string().max(1000), z.number(), z.boolean()]));
/** Display name such as `openai/gpt-5-mini`, `engine/demo@100` or `host:port/model`; never used as an address. */
export const judgeName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:@/~+-]{0,199}$/);

/**
 * Whether all that is wrong with a value is what a later version may have added: members, or names of an enumeration,
 * that this one does not know. A known member of another type is of no version.
 */
export function isFromLaterVersion({ issues }: z.ZodError, value: unknown): boolean {
  return issues.every((issue) => {
    if (issue.code === 'unrecognized_keys') return true;
    const isName = typeof memberAt(value, issue.path) === 'string';
    if (issue.code === 'invalid_union') return isName && 'discriminator' in issue;
    return issue.code === 'invalid_value' && isName && issue.values.every((known) => typeof known === 'string');
  });
}

function memberAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((member, key) => (member as Record<PropertyKey, unknown> | null)?.[key], value);
}

/** Describes the first problem of a value and its place: `policy.run: Invalid string: must match pattern …`. */
export function firstIssue({ issues }: z.ZodError): string {
  const [issue] = issues;
  return `${issue?.path.join('.') || 'as a whole'}: ${issue?.message}`;
}
