import type { SystemEvent } from '../../coordinator/system/events.ts'
import type { SystemJournal } from '../../coordinator/system/system-journal.ts'
import type { PublishedKey } from '../../security/authentication/jwks.ts'
import type { CertificateNews } from '../tls-identity.ts'

type DataOf<T extends SystemEvent['type']> = Extract<SystemEvent, { type: T }>['data']
type Served = Extract<CertificateNews, { kind: 'serves' }>

/**
 * The keys in force: this coordinator's certificate, and the keys with which tokens are verified. Their fingerprints
 * are recorded in the log while this coordinator writes it.
 */
export interface KeysInForce {
  /** @param path of the certificate */
  certificate(path: string, news: CertificateNews): void
  /** @param address of the server that publishes the keys, without secrets */
  tokenKeys(address: string, keys: readonly PublishedKey[]): void
  /** From now on records the keys in force and their changes; stops if undefined. */
  recordIn(journal: Pick<SystemJournal, 'record'> | undefined): void
}

const MOST_KID = 200
const MOST_REASON = 500

/** If this process has lost the log, the log's next writer records what is in force there. */
export function createKeysInForce(): KeysInForce {
  let journal: Pick<SystemJournal, 'record'> | undefined
  let shown: { readonly path: string; readonly served: Served } | undefined
  /** A certificate on disk that cannot be used. */
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
      // The files were written again without a change.
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
