import { isTellable } from './principal.ts'

/**
 * Characters that directories and readers overlook or confuse: invisible ones, and the marks that replace a character
 * that could not be shown or read.
 */
const OVERLOOKED = /[\p{Default_Ignorable_Code_Point}\p{Cf}\uFFFC\uFFFD]/u
/** White space other than single spaces within a name. */
const LOOSE_SPACE = /[^\P{White_Space} ]|^ | $| {2}/u

/**
 * Whether this text is the only accepted spelling of a name. Directories (RFC 4518) and identity providers compare
 * names by their own rules: width, ligatures, soft hyphens and spaces do not count for them. Here two spellings would
 * be two users. So only one spelling is a user name: the one that is its own NFKC form, without white space at its ends
 * and without invisible characters.
 */
export function isUserName(name: string): boolean {
  return (
    name !== '' &&
    isTellable(name) &&
    !OVERLOOKED.test(name) &&
    !LOOSE_SPACE.test(name) &&
    name.normalize('NFKC') === name
  )
}

/** Follows a text that is not a user name, in error messages. */
export const NO_USER_NAME = 'is not a user name: it has white space, invisible characters, or another form than NFKC'

/**
 * The name in lower case, for directories that ignore case.
 * @returns undefined where the lower-case form is ambiguous: a directory takes `ß` for `ss`, `ſ` for `s`, another `ı`
 * for `I`
 */
export function lowerName(name: string): string | undefined {
  const lower = name.toLowerCase()
  return lower.toUpperCase().toLowerCase().normalize('NFKC') === lower && isUserName(lower) ? lower : undefined
}

/**
 * The name in upper case.
 * @returns undefined where another name has the same upper-case form: `ß` and `ss`, `ı` and `i`
 */
export function upperName(name: string): string | undefined {
  const upper = name.toUpperCase()
  return upper.toLowerCase().normalize('NFKC') === name.toLowerCase() && isUserName(upper) ? upper : undefined
}

/** One spelling for all names that a directory may treat as the same. It is for comparison, never shown. */
export function comparedName(name: string): string {
  const seen = name.normalize('NFKC').replaceAll(new RegExp(OVERLOOKED, 'gu'), '')
  return seen
    .replaceAll(/\p{White_Space}+/gu, ' ')
    .replaceAll(/^ | $/g, '')
    .toLowerCase()
    .normalize('NFKC')
}
