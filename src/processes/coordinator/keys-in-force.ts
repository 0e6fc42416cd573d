import type { SystemEvent } from '../../coordinator/system/events.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { PublishedKey } from '../../security/authentication/jwks.ts'
import type { CertificateNews } from '../tls-identity.ts'

type DataOf<T extends SystemEvent['type']> = Extract<SystemEvent, { type: T }>['data']
type Served = Extract<CertificateNews, { kind: 'serves' }>

/** By what this coordinator is known, and by whose keys it believes tokens; told to the log, by fingerprints, while it writes that. */
export interface KeysInForce {
  /** @param path of the certificate */
  certificate(path: string, news: CertificateNews): void
  /** @param address of the server that publishes them, as it may be told of */
  tokenKeys(address: string, keys: readonly PublishedKey[]): void
  /** From now on the log is told, of what holds and of what changes; of nothing where undefined. */
  recordIn(journal: Pick<SystemJournal, 'record'> | undefined): void
}

const MOST_KID = 200
const MOST_REASON = 500

/** A log that is lost to this process is told by its next writer what holds there. */
export function createKeysInForce(): KeysInForce {
  let journal: Pick<SystemJournal, 'record'> | undefined
  let shown: { readonly path: string; readonly served: Served } | undefined
  /** Lies there and cannot be taken. */
  let refused: DataOf<'FileRefused'> | undefined
  let published: { readonly address: string; readonly keys: DataOf<'TokenKeysTaken'>['keys'] } | undefined

  return {
    certificate(path, news) {
      if (news.kind === 'refused') {
        if (!shown) return
        const reason = news.error.message.slice(0, MOST_REASON)
        refused = { file: 'certificate', path, reason, inForce: shown.served.fingerprint }
        journal?.record('FileRefused', refused).catch(() => {})
        return
      }
      const before = shown?.served
      shown = { path, served: news }
      refused = undefined
      // The files were written anew as they were.
      if (before && sameCertificate(before, news)) return
      journal?.record('CertificateTaken', certificateFact(path, news, before)).catch(() => {})
    },
    tokenKeys(address, given) {
      const keys = given.map(({ kid, fingerprint }) => ({
        ...(kid === undefined ? {} : { kid: kid.slice(0, MOST_KID) }),
        fingerprint,
      }))
      const before = published?.keys
      published = { address, keys }
      if (before && JSON.stringify(before) === JSON.stringify(keys)) return
      const fact = { address, keys, occasion: before ? ('reload' as const) : ('start' as const) }
      const recorded = before ? { ...fact, before: before.map(({ fingerprint }) => fingerprint) } : fact
      journal?.record('TokenKeysTaken', recorded).catch(() => {})
    },
    recordIn(next) {
      journal = next
      if (shown) next?.record('CertificateTaken', certificateFact(shown.path, shown.served, undefined)).catch(() => {})
      if (refused) next?.record('FileRefused', refused).catch(() => {})
      if (published) next?.record('TokenKeysTaken', { ...published, occasion: 'start' }).catch(() => {})
    },
  }
}

function sameCertificate(one: Served, other: Served): boolean {
  return one.fingerprint === other.fingerprint && one.clientAuthorities === other.clientAuthorities
}

function certificateFact(path: string, now: Served, before: Served | undefined): DataOf<'CertificateTaken'> {
  const { names, fingerprint, validUntil, clientAuthorities } = now
  return {
    path,
    names,
    fingerprint,
    validUntil: validUntil.toISOString(),
    occasion: before ? 'reload' : 'start',
    ...(clientAuthorities === undefined ? {} : { clientAuthorities }),
    ...(before ? { before: before.fingerprint } : {}),
    ...(before?.clientAuthorities === undefined ? {} : { clientAuthoritiesBefore: before.clientAuthorities }),
  }
}
