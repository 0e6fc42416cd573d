// What a server with authentication and TLS needs for a measurement: certificate, passwords, a key of tokens.
import { spawnSync } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hashSync } from '@node-rs/bcrypt'

export const PASSWORD = 'open sesame'

/**
 * @param users whose password is PASSWORD, by bcrypt
 * @returns settings by their environment variables, and what clients send
 */
export function createCredentials(users, cost = 10) {
  const folder = mkdtempSync(join(tmpdir(), 'quipu-bench-credentials-'))
  const at = (name) => join(folder, name)
  const write = (name, text) => {
    writeFileSync(at(name), text, { mode: 0o644 })
    return at(name)
  }
  const hash = hashSync(PASSWORD, { cost }).replace(/^\$2[ab]\$/, '$2y$')
  const secret = randomBytes(32)
  const passwordFile = write('passwords', users.map((user) => `${user}:${hash}\n`).join(''))
  const jwtKeyFile = write('jwt.key', secret.toString('base64'))
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', at('key.pem')]
  const made = spawnSync('openssl', ['req', '-x509', ...key, '-days', '1', ...subject, '-out', at('cert.pem')])
  if (made.status !== 0) throw new Error(`openssl: ${made.stderr}`)
  spawnSync('chmod', ['-R', 'a+rX', folder])
  const base64url = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return {
    authentication: {
      QUIPU_AUTHENTICATION: 'password,jwt',
      QUIPU_PASSWORD_FILE: passwordFile,
      QUIPU_JWT_KEY_FILE: jwtKeyFile,
    },
    tls: { QUIPU_TLS_CERT: at('cert.pem'), QUIPU_TLS_KEY: at('key.pem'), QUIPU_TLS_CA_FILE: at('cert.pem') },
    ca: readFileSync(at('cert.pem')),
    basic: (user, password = PASSWORD) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
    bearer(user) {
      const exp = Math.floor(Date.now() / 1000) + 3600
      const signed = `${base64url({ alg: 'HS256' })}.${base64url({ sub: user, exp })}`
      return `Bearer ${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
