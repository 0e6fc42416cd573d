// The characters that JSON readers look for, as UTF-16 codes, and the scans that they share.
const TAB = 9
const NEWLINE = 10
const RETURN = 13
export const SPACE = 32
export const QUOTE = 34
export const PLUS = 43
export const COMMA = 44
export const MINUS = 45
export const POINT = 46
export const ZERO = 48
const NINE = 57
export const COLON = 58
export const UPPER_E = 69
export const OPEN_BRACKET = 91
export const BACKSLASH = 92
export const CLOSE_BRACKET = 93
export const LOWER_E = 101
export const LOWER_F = 102
export const LOWER_N = 110
export const LOWER_T = 116
export const OPEN_BRACE = 123
export const CLOSE_BRACE = 125
export const SURROGATE = 0xd800
export const AFTER_SURROGATES = 0xe000

/** The position of the first character from `start` on that is not a blank of JSON. */
export function afterBlanks(text: string, start: number): number {
  for (let at = start; ; at++) {
    const char = text.charCodeAt(at)
    // Most other characters are above all blanks. The condition also ends the loop at the end of the text, for NaN.
    if (!(char <= SPACE) || (char !== SPACE && char !== TAB && char !== NEWLINE && char !== RETURN)) return at
  }
}

/** The position of the first character from `start` on that is not a digit. */
export function afterDigits(text: string, start: number): number {
  let at = start
  for (let char = text.charCodeAt(at); char >= ZERO && char <= NINE; char = text.charCodeAt(at)) at++
  return at
}
