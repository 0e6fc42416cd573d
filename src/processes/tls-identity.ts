import { constants, createHash, createHmac, createPrivateKey, X509Certificate } from 'node:crypto'
import type { Server } from 'node:http'
import { createSecureContext, type Server as TlsServer, type TlsOptions } from 'node:tls'
import type { Config } from '../config/load-config.ts'
import { deriveKey } from '../security/cluster-secret.ts'
import { watchFiles, type FileNews, type WatchedFiles } from '../security/watched-files.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import type { ServedIdentity } from '../supervisor/messages.ts'

/** News of the files of a server's certificate. */
export type CertificateNews =
  | {
      readonly kind: 'serves'
      readonly names: string
      readonly validUntil: Date
      /** SHA-256 of the certificate, hex. */
      readonly fingerprint: string
      /** SHA-256 of the text of the authorities for clients, hex. */
      readonly clientAuthorities?: string
    }
  /** The files changed and cannot be used: the previous pair stays in use. */
  | { readonly kind: 'refused'; readonly error: Error }

/** The TLS identity of a server. */
export interface TlsIdentity {
  readonly options: TlsOptions
  /** From now on keeps that server's certificate up to date with the files. */
  serve(server: Server): void
  /** Reports the certificate in use, the last refusal if it came after that, and all later news. */
  onNews(report: (news: CertificateNews) => void): void
  close(): void
}

type IdentityConfig = Pick<
  Config,
  'tlsCert' | 'tlsKey' | 'tlsCaFile' | 'tlsClientCaFile' | 'sharedSecret' | 'authentication'
>

/** The identity that the previous process served, and a function that keeps this process's identity. */
export interface KeptIdentity {
  readonly last: ServedIdentity | undefined
  keep(served: ServedIdentity): void
}

/**
 * The certificate and key of the configured files, and whether clients are asked for certificates. Reads the files
 * again when they change.
 * @param kept in the supervisor's memory: a successor serves the previous identity while the files cannot be used
 * @returns undefined if no certificate is configured
 * @throws ExitError 64 when the files cannot be used and nothing was served before
 */
export function openTlsIdentity(config: IdentityConfig, kept: KeptIdentity = NOTHING_KEPT): TlsIdentity | undefined {
  const { tlsCert, tlsKey, authentication } = config
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const clientCaFile = authentication.includes('certificate') ? (config.tlsClientCaFile ?? config.tlsCaFile) : undefined
  let served: Server | undefined
  let onNews = (_news: CertificateNews): void => {}
  let last: CertificateNews

  function news(what: CertificateNews): void {
    last = what
    onNews(what)
  }

  const paths = [tlsCert, tlsKey, ...(clientCaFile === undefined ? [] : [clientCaFile])]
  const files = openFiles(paths, kept.last, {
    onReloaded() {
      kept.keep(files.value.pair)
      ;(served as (Server & Pick<TlsServer, 'setSecureContext'>) | undefined)?.setSecureContext(options())
      news(files.value.news)
    },
    onBroken: (error) => news({ kind: 'refused', error }),
  })
  last = files.value.news
  kept.keep(files.value.pair)

  function options(): TlsOptions {
    const { pair } = files.value
    return {
      ...secureOptionsOf(pair),
      ...(config.sharedSecret !== undefined && { ticketKeys: ticketKeys(config.sharedSecret, pair) }),
      sessionIdContext: 'quipu',
      ...(pair.clientCa !== undefined && { requestCert: true, rejectUnauthorized: false }),
    }
  }

  return {
    options: options(),
    serve: (server) => void (served = server),
    onNews(report) {
      onNews = report
      report(files.value.news)
      if (last.kind === 'refused') report(last)
    },
    close: files.stop,
  }
}

const NOTHING_KEPT: KeptIdentity = { last: undefined, keep: () => {} }

interface Found {
  readonly pair: ServedIdentity
  readonly news: CertificateNews
}

/** @param paths of certificate and key, and of the authorities for clients if clients are asked for certificates */
function openFiles(paths: readonly string[], last: ServedIdentity | undefined, news: FileNews): WatchedFiles<Found> {
  const read = ([cert = '', key = '', clientCa]: readonly string[]): Found => {
    const pair = { cert, key, clientCa }
    return { pair, news: check(pair) }
  }
  try {
    return watchFiles(paths, read, news, { before: () => last && { value: { pair: last, news: check(last) } } })
  } catch (error) {
    const path = error instanceof Error && 'path' in error ? String(error.path) : paths[0]
    const line = `Cannot use ${path} for TLS: ${(error as Error).message}`
    throw new ExitError(exitCodes.configuration, line)
  }
}

/** @throws Error when key and certificate do not match, or are not valid */
function check(pair: ServedIdentity): CertificateNews {
  if (/ENCRYPTED/.test(pair.key)) throw new Error('the key has a passphrase: use a key without one')
  createSecureContext(secureOptionsOf(pair))
  const certificate = new X509Certificate(pair.cert)
  // OpenSSL accepts a key of another kind, and then fails at every handshake.
  if (!certificate.checkPrivateKey(createPrivateKey(pair.key)))
    throw new Error('the key does not belong to the certificate')
  const { subjectAltName, subject, validTo, raw } = certificate
  return {
    kind: 'serves',
    names: subjectAltName ?? subject,
    validUntil: new Date(validTo),
    fingerprint: sha256(raw),
    ...(pair.clientCa !== undefined && { clientAuthorities: sha256(pair.clientCa) }),
  }
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}

function secureOptionsOf({ cert, key, clientCa }: ServedIdentity): TlsOptions {
  return {
    cert,
    key,
    ...(clientCa !== undefined && { ca: clientCa }),
    minVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  }
}

/**
 * Keys of TLS session tickets. Sessions continue with any process of the cluster. A session holds the client's verified
 * identity, so other authorities for clients mean other keys.
 */
function ticketKeys(secret: string, { clientCa }: ServedIdentity): Buffer {
  return createHmac('sha512', deriveKey(secret, 'tls-tickets'))
    .update(clientCa ?? '')
    .digest()
    .subarray(0, 48)
}
