/**
 * Snowball's English stemmer (Porter 2), https://snowballstem.org/algorithms/english/stemmer.html, for a word in lower
 * case; other words are returned unchanged.
 */
export function stem(word: string): string {
  if (word.length <= 2) return word
  const exception = exceptions.get(word)
  if (exception !== undefined) return exception
  let text = word
    .replace(/^'/, '')
    .replace(/^y/, 'Y')
    .replaceAll(/([aeiouy])y/g, '$1Y')
  const r1 = regionAfter(text, /^(?:gener|commun|arsen)/.exec(text)?.[0].length)
  const r2 = r1 + regionAfter(text.slice(r1), undefined)
  text = text.replace(/'(?:s'?)?$/, '')
  text = step1a(text)
  if (/^(?:inning|outing|canning|herring|earring|proceed|exceed|succeed)$/.test(text)) return text
  text = step1b(text, r1)
  text = text.replace(/(.[^aeiouy])[yY]$/, '$1i')
  text = replaceSuffix(text, step2, r1)
  text = text.replace(/([cdeghkmnrt])li$/, (all, before: string, at: number) => (at + 1 >= r1 ? before : all))
  text = step3(text, r1, r2)
  text = step4(text, r2)
  if (text.endsWith('e') && (text.length - 1 >= r2 || (text.length - 1 >= r1 && !isShortEnd(text.slice(0, -1)))))
    text = text.slice(0, -1)
  else if (text.endsWith('ll') && text.length - 1 >= r2) text = text.slice(0, -1)
  return text.replaceAll('Y', 'y')
}

const exceptions: ReadonlyMap<string, string> = new Map([
  ['skis', 'ski'],
  ['skies', 'sky'],
  ['dying', 'die'],
  ['lying', 'lie'],
  ['tying', 'tie'],
  ['idly', 'idl'],
  ['gently', 'gentl'],
  ['ugly', 'ugli'],
  ['early', 'earli'],
  ['only', 'onli'],
  ['singly', 'singl'],
  ['sky', 'sky'],
  ['news', 'news'],
  ['howe', 'howe'],
  ['atlas', 'atlas'],
  ['cosmos', 'cosmos'],
  ['bias', 'bias'],
  ['andes', 'andes'],
])

function regionAfter(text: string, known: number | undefined): number {
  if (known !== undefined) return known
  const match = /[aeiouy][^aeiouy]/.exec(text)
  return match === null ? text.length : match.index + 2
}

function isShortEnd(text: string): boolean {
  return /(?:^|[^aeiouy])[aeiouy][^aeiouywxY]$/.test(text) || /^[aeiouy][^aeiouy]$/.test(text)
}

function step1a(text: string): string {
  if (text.endsWith('sses')) return text.slice(0, -2)
  if (/ie[ds]$/.test(text)) return text.length > 4 ? text.slice(0, -2) : text.slice(0, -1)
  if (/(?:us|ss)$/.test(text)) return text
  return text.endsWith('s') && /[aeiouy]/.test(text.slice(0, -2)) ? text.slice(0, -1) : text
}

function step1b(text: string, r1: number): string {
  const eed = /eed(?:ly)?$/.exec(text)
  if (eed !== null) return eed.index >= r1 ? `${text.slice(0, eed.index)}ee` : text
  const cut = /(?:ed|ing)(?:ly)?$/.exec(text)
  if (cut === null || !/[aeiouy]/.test(text.slice(0, cut.index))) return text
  const rest = text.slice(0, cut.index)
  if (/(?:at|bl|iz)$/.test(rest)) return `${rest}e`
  if (/(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(rest)) return rest.slice(0, -1)
  return isShortEnd(rest) && r1 >= rest.length ? `${rest}e` : rest
}

const step2: readonly (readonly [string, string])[] = [
  ['ational', 'ate'],
  ['ization', 'ize'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['iveness', 'ive'],
  ['tional', 'tion'],
  ['biliti', 'ble'],
  ['lessli', 'less'],
  ['entli', 'ent'],
  ['ation', 'ate'],
  ['alism', 'al'],
  ['aliti', 'al'],
  ['ousli', 'ous'],
  ['iviti', 'ive'],
  ['fulli', 'ful'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['abli', 'able'],
  ['izer', 'ize'],
  ['ator', 'ate'],
  ['alli', 'al'],
  ['bli', 'ble'],
]

function replaceSuffix(text: string, suffixes: readonly (readonly [string, string])[], region: number): string {
  const found = suffixes.find(([suffix]) => text.endsWith(suffix))
  if (found === undefined) {
    return text.endsWith('logi') && text.length - 3 >= region ? text.slice(0, -1) : text
  }
  const at = text.length - found[0].length
  return at >= region ? text.slice(0, at) + found[1] : text
}

function step3(text: string, r1: number, r2: number): string {
  const suffixes: readonly (readonly [string, string])[] = [
    ['ational', 'ate'],
    ['tional', 'tion'],
    ['alize', 'al'],
    ['icate', 'ic'],
    ['iciti', 'ic'],
    ['ical', 'ic'],
    ['ness', ''],
    ['ful', ''],
  ]
  if (text.endsWith('ative')) return text.length - 5 >= r2 ? text.slice(0, -5) : text
  const found = suffixes.find(([suffix]) => text.endsWith(suffix))
  if (found === undefined) return text
  const at = text.length - found[0].length
  return at >= r1 ? text.slice(0, at) + found[1] : text
}

function step4(text: string, r2: number): string {
  const match = /(?:ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|al|er|ic)$/.exec(text)
  if (match !== null) return match.index >= r2 ? text.slice(0, match.index) : text
  const ion = /[st]ion$/.exec(text)
  return ion !== null && ion.index + 1 >= r2 ? text.slice(0, -3) : text
}
