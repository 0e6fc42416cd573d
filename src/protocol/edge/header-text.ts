/** What a header cannot carry, and the outermost spaces: its reader would cut off all around it. */
const UNSENDABLE = /[\u0000-\u001f\u007f]|^ | $/g

/**
 * Any text as the value of a response header: UTF-8, which clients give back byte for byte; what no header can carry is
 * percent-encoded, and a lone surrogate is U+FFFD.
 */
export function headerText(text: string): string {
  const sendable = text.replaceAll(UNSENDABLE, (part) => encodeURIComponent(part))
  // Node writes each character of a header as one byte.
  return Buffer.from(sendable, 'utf8').toString('latin1')
}
