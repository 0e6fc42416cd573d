import { isTellable } from './principal.ts'

/**
 * Characters that directories and readers overlook, or put one for another: those that are not shown, and the marks that stand
 * for something that could not be shown or read.
 */
const OVERLOOKED = /[\p{Default_Ignorable_Code_Point}\p{Cf}\uFFFC\uFFFD]/u
/** White space besides single spaces within a name. */
const LOOSE_SPACE = /[^\P{White_Space} ]|^ | $| {2}/u

/**
 * Is this text the only spelling of a name? Directories (RFC 4518) and identity providers compare names by rules of their own:
 * width, ligatures, soft hyphens and spaces do not count for them. Here two spellings would be two users, so all but one are
 * no name of a user: that which is its own NFKC form and has no white space at its ends and no character that nobody sees.
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

/** Said of a text that is not one, after it. */
export const NO_USER_NAME =
  'is the name of no user: it has white space, characters that are not seen, or another form than NFKC'

/**
 * The name in small letters, for directories that do not look at case.
 * @returns undefined where that is not one spelling of its own: a directory takes `ß` for `ss`, `ſ` for `s`, another `ı` for `I`
 */
export function lowerName(name: string): string | undefined {
  const lower = name.toLowerCase()
  return lower.toUpperCase().toLowerCase().normalize('NFKC') === lower && isUserName(lower) ? lower : undefined
}

/**
 * The name in capital letters.
 * @returns undefined where another name has the same: `ß` and `ss`, `ı` and `i`
 */
export function upperName(name: string): string | undefined {
  const upper = name.toUpperCase()
  return upper.toLowerCase().normalize('NFKC') === name.toLowerCase() && isUserName(upper) ? upper : undefined
}

/** One spelling for all that a directory may take for the same name; to compare, never to show. */
export function comparedName(name: string): string {
  const seen = name.normalize('NFKC').replaceAll(new RegExp(OVERLOOKED, 'gu'), '')
  return seen
    .replaceAll(/\p{White_Space}+/gu, ' ')
    .replaceAll(/^ | $/g, '')
    .toLowerCase()
    .normalize('NFKC')
}
