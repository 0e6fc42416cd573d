import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { checkServerIdentity, createSecureContext, rootCertificates, type SecureContext } from 'node:tls'
import type { PeerCertificate } from 'node:tls'
import { ExitError } from './engine-error.ts'
import { exitCodes } from './exit-codes.ts'
import { isLoopback } from './loopback.ts'

/** Decides whether this process trusts a server over TLS. */
export interface ServerTrust {
  /** The authorities for servers; undefined: those that Node trusts. */
  context(): SecureContext | undefined
  /** Why the server is not the one with this name; undefined if it is. */
  identify(host: string, certificate: PeerCertificate): Error | undefined
}

export interface ServerTrustFiles {
  /** Certificates (PEM) of the authorities for servers, in place of the public ones. */
  readonly tlsCaFile?: string | undefined
  /**
   * Certificate (PEM) of this machine's own servers. Callers on this machine use loopback addresses, which the
   * certificate may not name. A server that shows it has its key.
   */
  readonly tlsCert?: string | undefined
}

/** How often replaced files are looked for, milliseconds: a request after this time reads the files again. */
const LOOK_EVERY_MS = 2_000

/**
 * Reads the files, and reads them again after they were replaced. If a later read fails, the former certificates stay.
 * @param before last text of this machine's certificate, in case its file cannot be used now
 * @throws ExitError 64 when a file cannot be read or holds no certificate
 */
export function createServerTrust(files: ServerTrustFiles, before?: string): ServerTrust {
  let texts = { ca: readText(files.tlsCaFile), own: readOwn(files.tlsCert, before) }
  let made = makeOf(texts, files)
  let lookedAt = performance.now()

  function current(): Made {
    if (performance.now() - lookedAt < LOOK_EVERY_MS) return made
    lookedAt = performance.now()
    try {
      const now = readTexts(files)
      if (now.ca === texts.ca && now.own === texts.own) return made
      made = makeOf(now, files)
      texts = now
    } catch {
      // The file is half written, or missing for the moment.
    }
    return made
  }

  return {
    context: () => current().context,
    identify(host, certificate) {
      const { own } = current()
      if (own && isLoopback(host) && own.raw.equals(certificate.raw)) return undefined
      return checkServerIdentity(host, certificate)
    },
  }
}

interface Texts {
  readonly ca: string | undefined
  readonly own: string | undefined
}

interface Made {
  readonly context: SecureContext | undefined
  readonly own: X509Certificate | undefined
}

function readTexts({ tlsCaFile, tlsCert }: ServerTrustFiles): Texts {
  return { ca: readText(tlsCaFile), own: readText(tlsCert) }
}

function readOwn(path: string | undefined, before: string | undefined): string | undefined {
  try {
    const text = readText(path)
    if (text !== undefined) parsed(path, () => new X509Certificate(text))
    return text
  } catch (error) {
    if (before === undefined) throw error
    return before
  }
}

function makeOf({ ca, own }: Texts, { tlsCaFile, tlsCert }: ServerTrustFiles): Made {
  const authorities = ca === undefined ? undefined : parsed(tlsCaFile, () => (new X509Certificate(ca), ca))
  const certificate = own === undefined ? undefined : parsed(tlsCert, () => new X509Certificate(own))
  // A self-signed certificate is in no list of authorities.
  const selfSigned = certificate && certificate.subject === certificate.issuer ? [own!] : []
  if (authorities === undefined && selfSigned.length === 0) return { context: undefined, own: certificate }
  const vouching = [...(authorities === undefined ? rootCertificates : [authorities]), ...selfSigned]
  return { context: parsed(tlsCaFile, () => createSecureContext({ ca: vouching })), own: certificate }
}

function readText(path: string | undefined): string | undefined {
  return path === undefined ? undefined : parsed(path, () => readFileSync(path, 'utf8'))
}

function parsed<T>(path: string | undefined, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `Cannot use the certificates of ${path}: ${(error as Error).message}`)
  }
}
