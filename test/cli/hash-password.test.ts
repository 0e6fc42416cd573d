import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parsePasswordFile } from '../../src/security/authentication/password-file.ts'
import { matches } from '../../src/security/authentication/password-hash.ts'

const program = new URL('../../dist/cli/quipu.js', import.meta.url).pathname

async function hashPassword(user: string, password: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const running = promisify(execFile)(process.execPath, [program, 'hash-password', user])
  running.child.stdin!.end(password)
  return running.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
}

describe('quipu hash-password', () => {
  it('prints a line for the password file that matches this password only', async () => {
    const { code, stdout } = await hashPassword('ana', 'kipu knots\n')
    expect(code).toBe(0)
    const book = parsePasswordFile(stdout, Buffer.alloc(32))
    const { hash, known } = book.hashOf('ana')
    expect(known).toBe(true)
    expect(await matches('kipu knots', hash)).toBe(true)
    expect(await matches('kipu knot', hash)).toBe(false)
  })

  it.each([
    ['a user name with a colon', 'a:b', 'x', /must not contain a colon/],
    ['an empty password', 'ana', '', /empty/],
    ['a password that bcrypt would cut', 'ana', 'x'.repeat(73), /more than 72 bytes/],
  ])('refuses %s', async (_, user, password, message) => {
    const { code, stdout, stderr } = await hashPassword(user, password)
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
    expect(stderr).toMatch(message)
  })
})
