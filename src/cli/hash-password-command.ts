import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { hash } from '@node-rs/bcrypt'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'

const USAGE = `usage: quipu hash-password <user>

Reads a password from the terminal or from the first line of standard input. Prints the user's line for the password file
(setting passwordFile): user:hash, with a bcrypt hash. The password is neither stored nor shown.
`

/** Trino's documentation of password files asks for a cost of at least 8; each step doubles the work of a guess. */
const COST = 10
/** bcrypt ignores the bytes of a password beyond this number. */
const MOST_BYTES = 72

/**
 * `quipu hash-password`: prints a line of a password file.
 * @returns the exit code
 * @throws ExitError 64 when the user name or the password cannot be in a password file
 */
export async function hashPasswordCommand(argv: readonly string[]): Promise<number> {
  const [user, ...rest] = argv
  if (user === '--help') {
    process.stdout.write(USAGE)
    return 0
  }
  if (user === undefined || rest.length > 0) throw refused('give exactly one user; see quipu hash-password --help')
  if (user === '' || /[:\s\p{Cc}]/u.test(user))
    throw refused('a user name must not contain a colon, white space or a control character')
  const password = await readPassword(`Password for ${user}: `)
  if (password === '') throw refused('the password is empty')
  if (Buffer.byteLength(password) > MOST_BYTES) throw refused(`the password has more than ${MOST_BYTES} bytes`)
  if (password.includes('\0')) throw refused('the password contains a NUL character')
  process.stdout.write(`${user}:${await hash(password, { cost: COST })}\n`)
  return 0
}

function refused(why: string): ExitError {
  return new ExitError(exitCodes.configuration, `hash-password: ${why}`)
}

/** The first line of standard input. A terminal shows the prompt but not the typed keys. */
async function readPassword(prompt: string): Promise<string> {
  const terminal = process.stdin.isTTY
  if (terminal) process.stderr.write(prompt)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: silent, terminal })
  try {
    for await (const line of lines) return line
    return ''
  } finally {
    lines.close()
    if (terminal) process.stderr.write('\n')
  }
}
