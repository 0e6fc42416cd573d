import { constants, createHash, createHmac, createPrivateKey, X509Certificate } from 'node:crypto'
import type { Server } from 'node:http'
import { createSecureContext, type Server as TlsServer, type TlsOptions } from 'node:tls'
import type { Config } from '../config/load-config.ts'
import { deriveKey } from '../security/cluster-secret.ts'
import { watchFiles, type FileNews, type WatchedFiles } from '../security/watched-files.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import type { ServedIdentity } from '../supervisor/messages.ts'

/** What became of the files of a server's certificate. */
export type CertificateNews =
  | {
      readonly kind: 'serves'
      readonly names: string
      readonly validUntil: Date
      /** SHA-256 of the certificate, hex. */
      readonly fingerprint: string
      /** The same of the text of those who vouch for clients. */
      readonly clientAuthorities?: string
    }
  /** They changed and are of no use: the pair before goes on. */
  | { readonly kind: 'refused'; readonly error: Error }

/** By what a server is known over TLS. */
export interface TlsIdentity {
  readonly options: TlsOptions
  /** From now on that server has the certificate of the files, whenever they change. */
  serve(server: Server): void
  /** Told of what is served, of the last refusal where that came after it, and of all that comes. */
  onNews(report: (news: CertificateNews) => void): void
  close(): void
}

type IdentityConfig = Pick<
  Config,
  'tlsCert' | 'tlsKey' | 'tlsCaFile' | 'tlsClientCaFile' | 'sharedSecret' | 'authentication'
>

/** What a process before this one served, and where it is told what this one does. */
export interface KeptIdentity {
  readonly last: ServedIdentity | undefined
  keep(served: ServedIdentity): void
}

/**
 * Certificate and key of the configured files, and whether clients are asked for theirs; read again when they change.
 * @param kept in the supervisor's memory: a process that follows another serves what that one did while files are of no use
 * @returns undefined where none is configured
 * @throws ExitError 64 when the files are of no use, and nothing was served before
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

/** @param paths of certificate and key, and of who vouches for clients where they are asked */
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

/** @throws Error when key and certificate do not belong together, or are none */
function check(pair: ServedIdentity): CertificateNews {
  if (/ENCRYPTED/.test(pair.key)) throw new Error('the key has a passphrase, which nobody can enter here')
  createSecureContext(secureOptionsOf(pair))
  const certificate = new X509Certificate(pair.cert)
  // OpenSSL takes a key of another kind, and fails at every handshake then.
  if (!certificate.checkPrivateKey(createPrivateKey(pair.key)))
    throw new Error('the key is not that of the certificate')
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
 * Sessions go on with whichever process of the cluster a client comes to next. They hold who the client was found to be, so
 * others who vouch for clients begin others.
 */
function ticketKeys(secret: string, { clientCa }: ServedIdentity): Buffer {
  return createHmac('sha512', deriveKey(secret, 'tls-tickets'))
    .update(clientCa ?? '')
    .digest()
    .subarray(0, 48)
}
