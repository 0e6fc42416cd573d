/** Letters, digits and connectors, as in Joni's `[[:word:]]` and `\b`. */
export const WORD = '\\p{L}\\p{M}\\p{N}\\p{Pc}'

/** The characters of `[[:name:]]` and `\p{name}`, as the content of a class in V8. */
export const posix: Readonly<Record<string, string>> = {
  alpha: '\\p{Alphabetic}',
  alnum: '\\p{Alphabetic}\\p{Nd}',
  digit: '\\p{Nd}',
  upper: '\\p{Lu}',
  lower: '\\p{Ll}',
  space: '\\p{White_Space}',
  punct: '\\p{P}',
  word: WORD,
  blank: '\\p{Zs}\\t',
  cntrl: '\\p{Cc}',
  xdigit: '0-9a-fA-F',
  ascii: '\\x00-\\x7f',
  print: '\\P{C}',
  graph: '[\\P{C}--\\p{White_Space}]',
}

const java: Readonly<Record<string, string>> = {
  javaalphabetic: '\\p{Alphabetic}',
  javadigit: '\\p{Nd}',
  javaletter: '\\p{L}',
  javaletterordigit: '\\p{L}\\p{Nd}',
  javalowercase: '\\p{Lowercase}',
  javauppercase: '\\p{Uppercase}',
  javawhitespace: '\\p{White_Space}',
}

/** V8's names of general categories and properties; Joni ignores their case and the separators between their words. */
const known = (
  'Any Assigned Alphabetic ASCII_Hex_Digit Bidi_Control Case_Ignorable Cased Dash Default_Ignorable_Code_Point Deprecated ' +
  'Diacritic Extender Grapheme_Base Grapheme_Extend Hex_Digit ID_Continue ID_Start Ideographic Join_Control Lowercase ' +
  'Math Noncharacter_Code_Point Pattern_Syntax Pattern_White_Space Quotation_Mark Radical Sentence_Terminal Soft_Dotted ' +
  'Terminal_Punctuation Unified_Ideograph Uppercase Variation_Selector White_Space XID_Continue XID_Start Cased_Letter ' +
  'Close_Punctuation Connector_Punctuation Control Currency_Symbol Dash_Punctuation Decimal_Number Enclosing_Mark ' +
  'Final_Punctuation Format Initial_Punctuation Letter Letter_Number Line_Separator Lowercase_Letter Mark Math_Symbol ' +
  'Modifier_Letter Modifier_Symbol Nonspacing_Mark Number Open_Punctuation Other Other_Letter Other_Number ' +
  'Other_Punctuation Other_Symbol Paragraph_Separator Private_Use Punctuation Separator Space_Separator Spacing_Mark ' +
  'Surrogate Symbol Titlecase_Letter Unassigned Uppercase_Letter LC C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No ' +
  'P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs'
).split(' ')
const names = new Map(known.map((name) => [name.toLowerCase().replaceAll('_', ''), name]))

/** The supported blocks. */
const blocks: Readonly<Record<string, string>> = {
  inbasiclatin: '\\u{0}-\\u{7f}',
  inlatin1supplement: '\\u{80}-\\u{ff}',
  inlatinextendeda: '\\u{100}-\\u{17f}',
  inlatinextendedb: '\\u{180}-\\u{24f}',
  ingreek: '\\u{370}-\\u{3ff}',
  ingreekandcoptic: '\\u{370}-\\u{3ff}',
  incyrillic: '\\u{400}-\\u{4ff}',
  inhebrew: '\\u{590}-\\u{5ff}',
  inarabic: '\\u{600}-\\u{6ff}',
  inthai: '\\u{e00}-\\u{e7f}',
  inhiragana: '\\u{3040}-\\u{309f}',
  inkatakana: '\\u{30a0}-\\u{30ff}',
  incjkunifiedideographs: '\\u{4e00}-\\u{9fff}',
  inhangulsyllables: '\\u{ac00}-\\u{d7af}',
}

/** The characters of `\p{name}`, as the content of a class in V8; undefined for a name that Joni does not know. */
export function propertyClass(name: string): string | undefined {
  const plain = name.toLowerCase()
  const found = posix[plain] ?? java[plain] ?? blocks[plain]
  if (found !== undefined) return found
  const property = names.get(plain)
  if (property !== undefined) return `\\p{${property}}`
  const script = `\\p{Script=${plain.charAt(0).toUpperCase()}${plain.slice(1)}}`
  try {
    new RegExp(script, 'v')
    return script
  } catch {
    return undefined
  }
}
