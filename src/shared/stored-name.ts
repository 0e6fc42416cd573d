/** Bytes of UTF-8 that a name may have where it is stored: in every event, and in what is made of events. */
export const nameBytes = { user: 256, other: 1024 } as const

/** Whether a text is a name that can be stored. */
export function isStorableName(text: string, maxBytes: number = nameBytes.other): boolean {
  // A character has three bytes at most for each of its units.
  return text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes
}
