/** Texts that were placeholders in templates, that end or begin a string in DuckDB, or that are words of renderings. */
const MARKS = [
  'cost $EUR',
  '$E',
  '$F$E$D$O$N$R',
  '$1 $2 $3 $T1 $T2 $10',
  '$F(true)$E',
  `' || (SELECT 'taken') || '`,
  `') OVER (PARTITION BY '`,
  '@x @z @o',
  '@x@z@o%Y-%m-%d',
  `it's ''quoted'' ''''`,
  `''`,
  `'`,
  `"x" AS "y`,
  '-- comment',
  '/* comment */',
  '; SELECT 1',
  '$$dollar$$ $tag$quoted$tag$',
  `E'\\'' \\' \\\\ \\n`,
  'q_x(1) q_idiv(t_a(2), 3) CASE WHEN x THEN y END CASE',
  'zz0_ zz1_ v0 v1.p0 x1 c0 w0',
  'CAST(NULL AS VARCHAR)',
  '%s %d %1$s {} {0}',
  '%_!%!_ a%b_c',
  '(a+)+[b.c]{2}|^$?*\\d',
  '$.a[0] lax $ strict',
  ' \t\r\n\v\f leading and trailing ',
]

/** Texts of every plane of Unicode. */
const PLANES = [
  '\u0001\u001f\u007f\u0080\u009f\u00a0\u00ad',
  'ÄÖÜßñé日本語한국어עברית',
  '\u200b\u200e\u202e\u2028\u2029\ufeff\ufffd\uffff',
  '\ue000\ue001\ue002\uf8ff',
  '𝒜😀👩‍👩‍👧\u{1ffff}',
  '𠀀\u{2ffff}\u{30000}\u{3ffff}',
  '\u{e0001}\u{e007f}\u{efffe}',
  '\u{f0000}\u{ffffd}\u{100000}\u{10ffff}',
]

/** NUL, which no statement of DuckDB may hold. */
const NUL = ['\0', `a\0b\0\0$E'\0`]

export const hostileTexts: readonly string[] = [...MARKS, ...PLANES, ...NUL]

/** A text as a literal of the dialect. NUL and other characters that a statement may not contain are escaped. */
export function dialectLiteral(text: string): string {
  if (!/[\0-\x1f\x7f]/.test(text)) return `'${text.replaceAll("'", "''")}'`
  const escaped = [...text].map((character) => {
    if (character === '\\') return '\\\\'
    if (character === "'") return "''"
    const point = character.codePointAt(0)!
    return point < 0x20 || point === 0x7f ? `\\${point.toString(16).padStart(4, '0')}` : character
  })
  return `U&'${escaped.join('')}'`
}

/** An expression for the same text without a literal of it. */
export function dialectBytes(text: string): string {
  return `from_utf8(X'${Buffer.from(text).toString('hex')}')`
}
