import type { KeyObject } from 'node:crypto'
import type { State } from '../fold.ts'
import { anchorHash, headsRoot, isSignedBy, type Anchor, type ExportedAnchor, type Head } from './anchor.ts'
import { followKeys, trustedKeys, type AnchorKeyRecord, type KeyChain } from './anchor-keys.ts'
import type { AuditedEvent } from './audit-log.ts'
import type { Finding } from './finding.ts'

export interface AnchorChecksOptions {
  readonly logId: string
  readonly partitions: number
  /** The anchors that the log recorded. */
  readonly recorded: readonly { readonly sequence: number; readonly anchor: Anchor }[]
  /** Anchors that were exported from the system and are believed. */
  readonly exported?: readonly ExportedAnchor[]
  /** The records of keys in the log. */
  readonly keyRecords: readonly AnchorKeyRecord[]
  /**
   * Keys that are trusted; undefined: the keys of the exported anchors, else the log's first. Without any key
   * signatures are not checked.
   */
  readonly keys?: readonly KeyObject[]
  readonly onFinding: (finding: Finding) => void
}

/** Compares the log with its anchors while an audit reads it. */
export class AnchorChecks {
  readonly #signed = new Set<string>()
  readonly #options: AnchorChecksOptions
  /** Ordered by number. */
  readonly #anchors: readonly Anchor[]
  /** By log partition: index of the anchor that signs the next events. */
  readonly #next: number[]
  readonly #heads = new Map<number, Map<string, Head>>()
  /** By log partition: whether the log already differed from an anchor; reported once. */
  readonly #broken: boolean[]

  constructor(options: AnchorChecksOptions) {
    this.#options = options
    this.#next = Array.from({ length: options.partitions }, () => 0)
    this.#broken = Array.from({ length: options.partitions }, () => false)
    const { recorded, exported = [], logId } = options
    const chain = followKeys(trustedKeys(options), logId, options.keyRecords)
    const byUnknown = new Map<string, number[]>()
    const byNumber = new Map<number, Anchor>()
    /**
     * Checks a signature.
     * @returns whether to compare the anchor with the log; true also for an unknown key, although that proves nothing
     */
    const verify = (anchor: Anchor, where: Pick<Finding, 'stream' | 'sequence'>): boolean => {
      if (chain.known.size === 0) return true
      const key = chain.known.get(anchor.key)
      if (!key) {
        byUnknown.set(anchor.key, [...(byUnknown.get(anchor.key) ?? []), anchor.number])
        return true
      }
      if (isSignedBy(anchor, key)) {
        this.#signed.add(anchorHash(anchor))
        return true
      }
      this.#find(`Anchor ${anchor.number} differs from what its key signed`, where)
      return false
    }
    for (const anchor of exported) {
      const before = byNumber.get(anchor.number)
      if (anchor.logId !== logId) this.#find(`Exported anchor ${anchor.number} belongs to another log: ${anchor.logId}`)
      else if (before && anchorHash(before) !== anchorHash(anchor))
        this.#find(`Exported anchor ${anchor.number} occurs twice with different content`)
      else if (verify(anchor, {})) byNumber.set(anchor.number, anchor)
    }
    const inLog = new Set<string>()
    for (const { sequence, anchor } of recorded) {
      const where = { stream: 'system', sequence }
      inLog.add(anchorHash(anchor))
      if (!verify(anchor, where)) continue
      const known = byNumber.get(anchor.number)
      if (!known) byNumber.set(anchor.number, anchor)
      else if (anchorHash(known) !== anchorHash(anchor))
        this.#find(
          `Anchor ${anchor.number} differs from ${exported.includes(known as never) ? 'the exported one' : 'an earlier one with this number'}`,
          where,
        )
    }
    for (const anchor of exported)
      if (anchor.logId === logId && !inLog.has(anchorHash(anchor)))
        this.#find(`Exported anchor ${anchor.number} of ${anchor.time} is not in the log`)
    this.#reportKeys(chain, byUnknown)
    this.#anchors = [...byNumber.values()].sort((a, b) => a.number - b.number)
    for (const [index, anchor] of this.#anchors.entries()) {
      const before = this.#anchors[index - 1]
      const expected = before ? anchorHash(before) : ''
      if (anchor.number !== (before?.number ?? 0) + 1)
        this.#find(`Anchor ${anchor.number} is in the log, but the anchor before it is missing`)
      else if (anchor.previous !== expected) this.#find(`Anchor ${anchor.number} does not follow the anchor before it`)
    }
  }

  /**
   * Reports each unknown key, and each record that names a known key as its signer although that key did not sign it.
   */
  #reportKeys({ known, forged, unknown }: KeyChain, byUnknown: ReadonlyMap<string, readonly number[]>): void {
    for (const { key, signedBy } of forged)
      this.#find(`A record says that key ${signedBy} introduces key ${key}, but key ${signedBy} has not signed it`)
    for (const key of new Set([...byUnknown.keys(), ...unknown.map((record) => record.key)])) {
      const numbers = [...new Set(byUnknown.get(key))].sort((a, b) => a - b)
      const range =
        numbers.length === 0 ? 'no anchor' : `anchors ${numbers[0]} to ${numbers.at(-1)} (${numbers.length})`
      this.#options.onFinding({
        kind: 'unknown-key',
        what: `Key ${key} is unknown: it is not trusted, and no known key introduces it; it signed ${range}`,
      })
    }
    if (known.size > 0 && byUnknown.size > 0 && this.#signed.size === 0)
      this.#find('No anchor is signed with a known key: the log may be a different one, or rewritten as a whole')
  }

  /** Number of anchors whose signature was verified. */
  get signed(): number {
    return this.#signed.size
  }

  get count(): number {
    return this.#anchors.length
  }

  /** Takes the fold of the log partition below an offset. The caller must call it with every offset, in order. */
  checkPosition(partition: number, offset: bigint, state: State): void {
    for (;;) {
      const index = this.#next[partition]!
      const anchor = this.#anchors[index]
      const signed = anchor?.at[partition]
      if (!anchor || !signed || BigInt(signed.offset) > offset) return
      if (BigInt(signed.offset) === offset && (signed.count !== state.count || signed.hash !== state.hash))
        this.#reportMismatch(
          anchor,
          partition,
          `${state.count} events differ from the ${signed.count} events that it signed`,
        )
      this.#next[partition] = index + 1
      if (this.#next.every((next) => next > index)) this.#compareHeads(index, anchor)
    }
  }

  event(partition: number, { stream, envelope }: AuditedEvent): void {
    const index = this.#next[partition]!
    if (index >= this.#anchors.length) return
    let heads = this.#heads.get(index)
    if (!heads) this.#heads.set(index, (heads = new Map()))
    heads.set(stream, { sequence: envelope.sequence, hash: envelope.hash })
  }

  /** Reports anchors that sign offsets beyond the end of the log. */
  finish(): void {
    for (let partition = 0; partition < this.#options.partitions; partition++) {
      const anchor = this.#anchors[this.#next[partition]!]
      if (anchor) this.#reportMismatch(anchor, partition, `the log ends before offset ${anchor.at[partition]?.offset}`)
    }
  }

  #compareHeads(index: number, anchor: Anchor): void {
    const heads = this.#heads.get(index) ?? new Map<string, Head>()
    this.#heads.delete(index)
    const follows = index === 0 ? anchor.number === 1 : this.#anchors[index - 1]!.number === anchor.number - 1
    if (!follows) return
    if (heads.size !== anchor.heads)
      this.#find(`Anchor ${anchor.number} signed the heads of ${anchor.heads} streams; the log has ${heads.size} there`)
    else if (headsRoot(heads) !== anchor.root)
      this.#find(`The log has other heads of the ${anchor.heads} streams than anchor ${anchor.number} signed`)
  }

  #reportMismatch(anchor: Anchor, partition: number, what: string): void {
    if (this.#broken[partition]) return
    this.#broken[partition] = true
    const position = `${partition}/${anchor.at[partition]?.offset}`
    this.#options.onFinding({ kind: 'anchor', position, what: `Below anchor ${anchor.number}: ${what}` })
  }

  #find(what: string, where: Pick<Finding, 'stream' | 'sequence'> = {}): void {
    this.#options.onFinding({ kind: 'anchor', ...where, what })
  }
}
