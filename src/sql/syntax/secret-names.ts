import { tokenSet } from './keywords.ts'

/**
 * Words for passwords in other languages than English. They are matched in lower case without accents (`plain`), so
 * `contraseña`, `Contrasena` and `CONTRASEÑA` are the same word.
 */
const COMPOUND_WORDS = listOf(`
  passwort passworter kennwort kennworter geheimwort contrasena contrasenas contrasenya motdepasse motsdepasse
  palavrapasse parolachiave wachtwoord wachtwoorden losenord passord adgangskode salasana jelszo matkhau
  katasandi`)
/** These also occur as endings of other words, so they must match a whole word. */
const LONE_WORDS = ['senha', 'senhas', 'kodeord', 'haslo', 'hasło', 'heslo', 'sifre', 'lozinka']
/** Words of scripts in which a name may join words without a separator. */
const OTHER_WORDS = listOf(`
  пароль пароля пароли паролі парола лозинка συνθηματικο κωδικοςπροσβασης 密码 密碼 口令 パスワード 暗証番号 비밀번호 패스워드 סיסמה
  סיסמא كلمةالمرور كلمةالسر पासवर्ड รหัสผ่าน`).map(plain)

function listOf(words: string): readonly string[] {
  return words.trim().split(/\s+/)
}

/** The text in lower case, without accents and combining marks. */
function plain(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
}

/** Blanks and signs between the parts of one word: `mot_de_passe`, `mật khẩu`. */
const SIGNS = /[^\p{L}\p{N}]+/gu
const compoundWord = new RegExp(`(?:${COMPOUND_WORDS.join('|')})$`)
const foreignWord = new RegExp([...COMPOUND_WORDS, ...LONE_WORDS, ...OTHER_WORDS].join('|'))
const otherWord = new RegExp(OTHER_WORDS.join('|'))
/** A cheap test for the same words by their beginnings, in texts that may split them with signs. */
const beginnings =
  /passw|passord|kennw|geheimw|contrase|mots?[^a-z]{0,3}de|senha|palavra|parola|wachtw|senord|gangskode|kodeord|salasana|hasl|heslo|jelsz|ifre|lozinka|khau|sandi/i
const UNUSUAL = /[^\0-\x7f]/

/** Whether a text contains a word for a password in another language. */
function isForeign(text: string): boolean {
  if (!UNUSUAL.test(text) && !beginnings.test(text)) return false
  return foreignWord.test(plain(text).replace(SIGNS, ''))
}

const suspiciousWords =
  /pass|pwd|pw|secret|token|credential|(?:api|access|private|account)[-_ ]?key|(?:^|[^a-z0-9])keys?(?![a-z0-9])|jwt|hmac|identified|bearer|basic |authorization|AKIA|eyJ|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AIza|sk-|@/i
const camelKey = /[a-z0-9]Key(?![a-z])/

/** Whether a text may contain anything to redact; most statements need no further check. */
export function isSuspicious(text: string): boolean {
  return suspiciousWords.test(text) || camelKey.test(text) || isForeign(text)
}

/** Words that mark a name as a secret's, in any naming style: `db_password`, `s3.aws-secret-key`, `apiToken`. */
const secretWords = tokenSet(`
  password passwords passwd passwds pwd pwds pw pass passphrase passphrases passcode passcodes secret secrets token tokens
  credential credentials apikey apikeys secretkey accesskey privatekey authorization identified jwt bearer hmac`)

/** Kinds of keys that are not secrets. */
const plainKeys = /(?:^|_)(?:partition|primary|foreign|sort|group|join|row|order|cluster|hash|surrogate|natural)key$/

/** Figures about secrets are not secrets: `token_count`, `password_length`. */
const figures = tokenSet('count counts length lengths size sizes')

const MAX_NAME = 256

/** Whether a name is a secret's. @param name of a column, a property, a function, an argument …, without quotes */
export function isSecretName(name: string): boolean {
  // A real name is shorter. To check a longer text would take too much time.
  const short = name.slice(-MAX_NAME)
  if (isForeignName(short)) return true
  const words = wordsOf(short.replace(/([a-z0-9])([A-Z])/g, '$1_$2'))
  const last = words.at(-1)
  if (last === undefined || figures.has(last)) return false
  const all = [...words, ...wordsOf(short)]
  if (all.some((word) => word !== 'pass' && secretWords.has(word))) return true
  if (all.some((word) => /(?:password|passwd|secret|token)$/.test(word))) return true
  return last === 'pass' || (last === 'key' && !plainKeys.test(words.slice(-2).join('')))
}

/** Whether a word of the name, or the name without its signs, ends with a word for a password in another language. */
function isForeignName(name: string): boolean {
  if (!UNUSUAL.test(name) && !beginnings.test(name)) return false
  const words = plain(name).split(SIGNS)
  const whole = words.join('')
  return (
    words.some((word) => LONE_WORDS.includes(word)) ||
    [...words, whole].some((word) => compoundWord.test(word)) ||
    otherWord.test(whole)
  )
}

function wordsOf(name: string): readonly string[] {
  return name
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
}

/** The text between a name and its value. */
const ASSIGNING = /\s{0,20}(?:[:=]|=>)\s{0,20}["']?(?:%s["']?)?$/

/**
 * Whether a literal names a secret instead of being one: `x['password']`, `'$.credentials.token'`,
 * `'my password=' || x`.
 */
export function namesSecret(literal: string): boolean {
  if (literal.length > MAX_NAME) return false
  const before = literal.replace(ASSIGNING, '')
  const name = before === literal ? literal : (before.split(/[\s,;&]/).at(-1) ?? '')
  return /^[\w\p{L}\p{M}\p{N}.$\-[\]"'/]+$/u.test(name) && isSecretName(name)
}

const FOREIGN_NAMES =
  'kennw(?:ort|örter)|geheimwort|contrase[nñ]as?|mot[-_ ]?de[-_ ]?passe|senhas?|wachtwoord|l[oö]senord|passord|adgangskode|kodeord|salasana|has[lł]o|heslo|jelsz[oó]|[sş]ifre|lozinka|m[aậ]t[-_ ]?kh[aẩ]u|kata[-_ ]?sandi|парол[ья]|парола|密码|密碼|口令|パスワード|暗証番号|비밀번호|패스워드|סיסמה|पासवर्ड'
const NAMES = `(?:${FOREIGN_NAMES}|pass(?:wort|wörter|word|wd|phrase|code)?s?|pwd|pw|secrets?|tokens?|jwt|credentials?|(?:api|access|private|secret|account)[-_ ]?keys?|authorization)`

/**
 * A secret's name followed by a value, inside a literal or a comment: `"password": "x"`, `token=x`. All repetitions are
 * bounded, so that the time is linear for any text.
 */
const assignment = new RegExp(
  `${NAMES}\\w{0,40}\\\\?["']{0,4}\\s{0,20}(?:[:=]|<>|\\blike\\b|\\bin\\b)|identified\\s{1,20}by`,
  'i',
)
const shapes: readonly RegExp[] = [
  /\bbearer\s{1,20}[\w.~+/=-]{3}/i,
  /\b[Bb]asic\s{1,20}(?=[A-Za-z+/]{0,80}[0-9A-Z=+/])[\w+/=-]{4}/,
  /AKIA[0-9A-Z]{12}|eyJ[\w-]{8,400}\.[\w-]|-----BEGIN [A-Z ]{0,20}PRIVATE KEY/,
  /\b(?:password|passwd|pwd|passphrase|passcode|secret|api[-_ ]?key)\s{1,5}(?:is|was)\s{1,5}["'`]?(?!(?:not|null|wrong|invalid|empty|missing|required|expired)\b)[^\s"'`]/i,
  /\b(?:gh[pousr]_\w{16}|github_pat_\w{16}|glpat-[\w-]{12}|xox[abprs]-[\w-]{8}|AIza[\w-]{20}|sk-[\w-]{16})/,
]
/** `bob:pw@host`, with or without a scheme before it. */
const userInfo = /(^|[^\w.+%-])((?!mailto:|acct:|sip:|xmpp:)[^\s/?#'"@:]{1,200}:[^\s/?#'"@]{1,200})@/gi
const userOfUri = /(:\/\/)([^\s/?#'"@]+)@/g

/** Whether a literal's text contains a secret, regardless of its context. */
export function holdsSecret(literal: string): boolean {
  return assignment.test(literal) || shapes.some((shape) => shape.test(literal))
}

/** Replaces `user:password@` in a text; appends the secrets to `found`. */
export function withoutUserInfo(text: string, found: string[]): string {
  const take = (_: string, before: string, info: string): string => {
    found.push(info)
    const password = info.slice(info.indexOf(':') + 1)
    if (password !== '') found.push(password)
    return `${before}***@`
  }
  return text.replace(userOfUri, take).replace(userInfo, take)
}

const assignedValue = new RegExp(
  `(${NAMES}\\w{0,40}\\\\?["']{0,4}\\s{0,20}(?::|=>?)\\s{0,20})(?:(?:bearer|basic)\\s{1,20})?([^\\s,;]+)`,
  'gi',
)
/** In prose, these words nearly always refer to an actual secret. */
const secretPattern = new RegExp(
  `\\b(?:password|passwort|passwd|pwd|passphrase|passcode|secret|credential|api[-_ ]?key|authorization|identified by|bearer)s?\\b|(?<![\\p{L}])(?:${FOREIGN_NAMES})`,
  'iu',
)

/** Whether prose mentions or contains a secret. */
export function holdsSecretWord(prose: string): boolean {
  return redactComment(prose, []) !== prose
}

/**
 * A comment's text without secrets: only the value is removed after `name =`; the whole text is removed if it mentions
 * a secret in another form.
 */
export function redactComment(text: string, found: string[]): string {
  const assigned = text.replace(assignedValue, (_, before: string, value: string) => {
    found.push(value)
    return `${before}***`
  })
  const rest = assigned.replace(assignedValue, '')
  if (secretPattern.test(rest) || shapes.some((shape) => shape.test(rest))) {
    for (const word of text.split(/[\s,;]+/)) if (word.length >= 4 && !/^[a-z]+$/i.test(word)) found.push(word)
    return ' *** '
  }
  return assigned
}
