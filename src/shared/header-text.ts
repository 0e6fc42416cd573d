/** Characters that a header cannot carry, and the outermost spaces, which its reader would cut off. */
const UNSENDABLE = /[\u0000-\u001f\u007f]|^ | $/g

/**
 * Encodes any text as the value of a header: as UTF-8, which clients give back byte for byte. Characters that no header
 * can carry are percent-encoded, and a lone surrogate becomes U+FFFD.
 */
export function headerText(text: string): string {
  // Node writes each character of a header as one byte.
  return Buffer.from(sendable(text), 'utf8').toString('latin1')
}

/**
 * Encodes any text as the value of a header for Trino, which reads headers as Latin-1: sent as UTF-8, the user `é` would
 * be another user there. A text with characters that Latin-1 lacks is encoded as by `headerText`.
 */
export function trinoHeaderText(text: string): string {
  return /^[\u0000-\u00ff]*$/.test(text) ? sendable(text) : headerText(text)
}

function sendable(text: string): string {
  return text.replaceAll(UNSENDABLE, (part) => encodeURIComponent(part))
}

/** Decodes the value of a header as UTF-8. Node reads the bytes as Latin-1. */
export function readHeaderText(value: string): string {
  return /[\u0080-\u00ff]/.test(value) ? Buffer.from(value, 'latin1').toString('utf8') : value
}
