import type { IncomingMessage } from 'node:http'
import { expect, it } from 'vitest'
import { createCertificateAuthenticator } from '../../../src/protocol/access/certificate-authenticator.ts'
import type { ClientCertificate } from '../../../src/protocol/edge/client-certificate.ts'

it('the certificate authenticator names a client after its verified certificate, and as fresh every 5 minutes', () => {
  let now = 0
  let shown: ClientCertificate | undefined
  const { credentialOf, verify } = createCertificateAuthenticator(
    () => now,
    () => shown,
  )
  const comes = (certificate?: ClientCertificate) => {
    shown = certificate
    return credentialOf({ socket: {} } as IncomingMessage)
  }
  const subject = 'CN=alice,OU=data'
  expect(comes()).toBeUndefined()
  expect(comes({ subject, alternativeNames: undefined, verified: false })).toBeUndefined()
  const credential = comes({ subject, alternativeNames: undefined, verified: true })!
  const verdict = (fresh: boolean) => ({ kind: 'verified', verified: { name: subject, groups: [] }, fresh })
  expect([verify(credential, '-'), verify(credential, '-')]).toEqual([verdict(true), verdict(false)])
  now += 5 * 60_000
  expect(verify(credential, '-')).toEqual(verdict(true))
})
