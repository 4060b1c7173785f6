/** Protobuf's wire by itself, for comparing messages without a schema: `1.2.2.5: chat`, each field with its numbers. */

export function fieldsOf(bytes: Uint8Array, path = ''): string[] {
  return parse(bytes).flatMap(({ field, value }) => {
    const place = path === '' ? String(field) : `${path}.${field}`;
    if (!(value instanceof Uint8Array)) return [`${place}: ${value}`];
    const text = Buffer.from(value).toString();
    // Ids are bytes that may look like anything; texts are printable; the rest are messages.
    if (isMessage(value) && !/^[\x20-\x7e]+$/.test(text)) return fieldsOf(value, place);
    return [`${place}: ${/^[\x20-\x7e]*$/.test(text) ? text : Buffer.from(value).toString('hex')}`];
  });
}

interface WireField {
  readonly field: number;
  readonly value: bigint | Uint8Array;
}

function parse(bytes: Uint8Array): WireField[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fields: WireField[] = [];
  let at = 0;
  const varint = (): bigint => {
    let [value, shift] = [0n, 0n];
    for (;;) {
      const byte = view.getUint8(at++);
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
      shift += 7n;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const [field, type] = [tag >> 3, tag & 7];
    if (field === 0) throw new Error('no field has the number 0');
    if (type === 0) fields.push({ field, value: varint() });
    else if (type === 1) fields.push({ field, value: view.getBigUint64((at += 8) - 8, true) });
    else if (type === 5) fields.push({ field, value: BigInt(view.getUint32((at += 4) - 4, true)) });
    else if (type === 2) {
      const length = Number(varint());
      if (at + length > bytes.length) throw new Error('a field is longer than its message');
      fields.push({ field, value: bytes.subarray(at, (at += length)) });
    } else throw new Error(`no field has the wire type ${type}`);
  }
  return fields;
}

function isMessage(bytes: Uint8Array): boolean {
  if (bytes.length === 0) return false;
  try {
    return parse(bytes).length > 0;
  } catch {
    return false;
  }
}
