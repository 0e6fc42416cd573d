/** How many bytes of UTF-8 a name may have in storage: in every event, and in all data made from events. */
export const nameBytes = { user: 256, other: 1024 } as const

/** Whether a text is a name that can be stored. */
export function isStorableName(text: string, maxBytes: number = nameBytes.other): boolean {
  // A UTF-16 unit takes at most three bytes of UTF-8.
  return text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes
}
