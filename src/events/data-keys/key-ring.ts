import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { LogChanged, LogUnavailable } from '../event-log.ts'
import type { StreamCipher, StreamKey } from '../record-store.ts'
import { BLOCK_DEPTH, keyName, makeKeyBlock, parseKeyName, type KeyBlock, type KeyName } from './key-block.ts'
import { readKeyFile, writeKeyFile } from './key-file.ts'
import type { KeyTable } from './key-table.ts'

export interface KeyRingOptions {
  /** The table of keys in Postgres. */
  readonly table: Pick<KeyTable, 'stamp' | 'read' | 'add' | 'forget'>
  /** Path of the copy in the data folder, for the time when Postgres is away or was lost. */
  readonly file: string
  /**
   * Whether this process maintains the copy, as a coordinator does. Other processes read it, and remove the keys that
   * they forget.
   */
  readonly keepsFile: boolean
  /** The topic whose keys are used; undefined: the keys of all topics, to decrypt what was encrypted earlier. */
  readonly log: string | undefined
  /** Whether the data of a stream is encrypted. */
  readonly encrypts: (stream: string) => boolean
  /** Whether an event of another stream is encrypted with a key that no other event has. @default none is */
  readonly encryptsAlone?: ((stream: string, type: string) => boolean) | undefined
  readonly onTrouble?: ((error: Error) => void) | undefined
  /** A block has keys for 2^depth queries. @default 20 */
  readonly depth?: number
  /** How often the ring reads other processes' changes, and repeats what failed. @default 15 s */
  readonly lookMs?: number
  /** How long `open` waits for Postgres; 0 when Postgres is known to be away. @default 1 s */
  readonly openWaitMs?: number
}

/** A start waits this long for Postgres, to know the keys that other processes made and forgot. */
const OPEN_WAIT_MS = 1000
const LOOK_MS = 15_000
/** Blocks are made for this many epochs ahead: the log can change its writer this many times while Postgres is away. */
const EPOCHS_AHEAD = 8
/** Limit of streams whose key is remembered. A stream beyond it gets another key with its next event. */
const MAX_STREAMS = 20_000

/**
 * The keys of this process, for all queries of a log. Keys are made ahead by the million, in Postgres and in a file of
 * the data folder, before any is used. So no statement waits for Postgres, and none fails when it is away.
 */
export class KeyRing implements StreamCipher {
  readonly #options: KeyRingOptions
  readonly #blocks = new Map<string, KeyBlock>()
  readonly #ofStreams = new Map<string, StreamKey>()
  #epoch: number | undefined
  /** The block that gives out keys, and the next index in it. Below: blocks that gave out all their keys. */
  #current: { readonly block: KeyBlock; next: number } | undefined
  readonly #used = new Set<string>()
  #stamp = ''
  #filed = false
  #looking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: KeyRingOptions) {
    this.#options = options
  }

  /** Reads the file and waits a while for Postgres. @throws MisconfiguredLog when the file is not a key file */
  async open(): Promise<void> {
    if (this.#timer) return
    const { lookMs = LOOK_MS, openWaitMs = OPEN_WAIT_MS } = this.#options
    for (const block of this.#inFile()) if (this.#isOwn(block)) this.#blocks.set(block.id, block)
    this.#timer = setInterval(() => void this.#look().catch(() => {}), lookMs).unref()
    const looked = this.#look().catch(() => {})
    const timer = new AbortController()
    await Promise.race([looked, sleep(openWaitMs, undefined, { signal: timer.signal }).catch(() => {})])
    timer.abort()
  }

  /** Reads the changes of other processes. @throws LogUnavailable */
  refresh(): Promise<void> {
    return this.#lookAnew()
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#timer)
  }

  /** Provides keys for the streams of an epoch. @throws LogUnavailable when there are none yet and Postgres is away */
  async prepare(epoch: number): Promise<void> {
    this.#epoch = epoch
    this.#current = undefined
    this.#ofStreams.clear()
    if (this.#unused().length === 0) await this.#lookAnew()
    else void this.#look().catch(() => {})
  }

  keyFor(stream: string, type = ''): StreamKey | undefined {
    if (this.#options.encryptsAlone?.(stream, type)) return this.#take()
    if (!this.#options.encrypts(stream)) return undefined
    const known = this.#ofStreams.get(stream)
    if (known) return known
    const key = this.#take()
    this.#ofStreams.set(stream, key)
    const [oldest] = this.#ofStreams.size > MAX_STREAMS ? this.#ofStreams.keys() : []
    if (oldest !== undefined) this.#ofStreams.delete(oldest)
    return key
  }

  encrypts(stream: string): boolean {
    return this.#options.encrypts(stream)
  }

  retire(stream: string): void {
    this.#ofStreams.delete(stream)
  }

  keyOf(name: KeyName): Buffer | undefined {
    const parsed = parseKeyName(name)
    const block = parsed && this.#blocks.get(parsed.block)
    if (!block || parsed.index >= 2 ** block.tree.depth)
      throw new LogChanged(
        `Data key ${name} is neither in Postgres nor in ${this.#options.file}: bring back the table quipu_log.data_keys, or this file from any coordinator`,
      )
    return block.tree.key(parsed.index)
  }

  /** All blocks that this process knows. */
  get blocks(): readonly KeyBlock[] {
    return [...this.#blocks.values()]
  }

  /** Whether a key is there, was forgotten, or is missing. */
  stateOf(name: KeyName): 'held' | 'forgotten' | 'missing' {
    const parsed = parseKeyName(name)
    const block = parsed && this.#blocks.get(parsed.block)
    if (!block || parsed.index >= 2 ** block.tree.depth) return 'missing'
    return block.tree.key(parsed.index) ? 'held' : 'forgotten'
  }

  isForgotten(name: KeyName): boolean {
    return this.stateOf(name) === 'forgotten'
  }

  async loadKeys(names: Iterable<KeyName>): Promise<void> {
    const isKnown = (name: KeyName): boolean => this.#blocks.has(parseKeyName(name)?.block ?? '')
    if ([...names].every(isKnown)) return
    // The block of such a key was made after this process last read the table.
    await this.#lookAnew()
  }

  async forget(names: Iterable<KeyName>): Promise<void> {
    const byBlock = new Map<string, number[]>()
    for (const parsed of [...names].map(parseKeyName)) {
      if (!parsed) continue
      const indexes = byBlock.get(parsed.block)
      if (indexes) indexes.push(parsed.index)
      else byBlock.set(parsed.block, [parsed.index])
    }
    // A block that only the file has goes to the table first; otherwise it would bring the keys back.
    await this.#lookAnew()
    for (const [id, indexes] of byBlock) {
      await this.#ask(() => this.#options.table.forget(id, indexes))
      for (const index of indexes) this.#blocks.get(id)?.tree.forget(index)
    }
    if (this.#options.keepsFile || existsSync(this.#options.file)) this.#write()
  }

  #take(): StreamKey {
    for (;;) {
      const current = (this.#current ??= this.#nextBlock())
      const { block } = current
      const size = 2 ** block.tree.depth
      const index = current.next++
      if (index === size / 2) void this.#look().catch(() => {})
      if (index < size) {
        const secret = block.tree.key(index)
        // A missing secret was forgotten in another log of the same name.
        if (secret) return { name: keyName(block.id, index), secret }
        continue
      }
      this.#used.add(block.id)
      this.#current = undefined
    }
  }

  #nextBlock(): { block: KeyBlock; next: number } {
    const [block] = this.#unused()
    if (!block) throw new LogUnavailable('All prepared data keys are used, and Postgres does not accept new ones')
    return { block, next: 0 }
  }

  /** Blocks of this epoch that have given out no key. */
  #unused(): KeyBlock[] {
    return [...this.#blocks.values()].filter(
      ({ id, epoch }) => epoch === this.#epoch && !this.#used.has(id) && id !== this.#current?.block.id,
    )
  }

  /** Compares once more; does not count a comparison that began earlier. */
  async #lookAnew(): Promise<void> {
    await this.#looking?.catch(() => {})
    await this.#look()
  }

  #look(): Promise<void> {
    this.#looking ??= this.#ask(() => this.#compare()).finally(() => (this.#looking = undefined))
    return this.#looking
  }

  async #ask<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (cause) {
      const error = new LogUnavailable(
        `Data keys could not be read from or written to Postgres: ${(cause as Error).message}`,
        { cause },
      )
      if (!this.#closed) this.#options.onTrouble?.(error)
      throw error
    }
  }

  /** Makes memory, table and file agree: a key that is forgotten in one of them is forgotten in all. */
  async #compare(): Promise<void> {
    const { table } = this.#options
    const stamp = await table.stamp()
    if (stamp !== this.#stamp) {
      const there = new Map((await table.read()).map((block) => [block.id, block]))
      await table.add([...this.#blocks.values()].filter(({ id }) => !there.has(id)))
      for (const block of there.values()) {
        const own = this.#blocks.get(block.id)
        if (!own) {
          this.#blocks.set(block.id, block)
          this.#filed = false
        } else if (await this.#reconcile(own, block)) this.#filed = false
      }
    }
    const made = this.#missing()
    await table.add(made)
    for (const block of made) this.#blocks.set(block.id, block)
    if (this.#options.keepsFile && (made.length > 0 || !this.#filed)) this.#write()
    if (made.length === 0) this.#stamp = stamp
  }

  /** Makes a block in memory and in the table agree. @returns whether memory changed */
  async #reconcile(own: KeyBlock, there: KeyBlock): Promise<boolean> {
    const [ours, theirs] = [own.tree.forgotten, there.tree.forgotten]
    if (ours.length === theirs.length) return false
    const known = new Set(theirs)
    const more = ours.filter((index) => !known.has(index))
    // The table was restored from an older backup.
    if (more.length > 0) await this.#options.table.forget(own.id, more)
    return theirs.map((index) => own.tree.forget(index)).some(Boolean)
  }

  /** Blocks that should exist by now, made anew. */
  #missing(): KeyBlock[] {
    const { log, depth = BLOCK_DEPTH } = this.#options
    if (this.#epoch === undefined || log === undefined) return []
    const there = new Set([...this.#blocks.values()].map(({ epoch }) => epoch))
    const ahead = Array.from({ length: EPOCHS_AHEAD }, (_, index) => this.#epoch! + 1 + index)
    const epochs = ahead.filter((epoch) => !there.has(epoch))
    // One block in use and one in reserve.
    const own = (this.#current ? 1 : 2) - this.#unused().length
    for (let count = 0; count < own; count++) epochs.unshift(this.#epoch)
    return epochs.map((epoch) => makeKeyBlock(log, epoch, depth))
  }

  /** Writes the file. Keeps blocks of other logs, and those that other processes of this data folder wrote. */
  #write(): void {
    const { file } = this.#options
    const blocks = new Map<string, KeyBlock>()
    for (const block of this.#inFile()) {
      const own = this.#isOwn(block) ? this.#blocks.get(block.id) : undefined
      if (own) for (const index of block.tree.forgotten) own.tree.forget(index)
      else blocks.set(block.id, block)
    }
    for (const [id, block] of this.#blocks) blocks.set(id, block)
    writeKeyFile(file, blocks.values())
    this.#filed = true
  }

  #isOwn({ log }: KeyBlock): boolean {
    return this.#options.log === undefined || this.#options.log === log
  }

  #inFile(): KeyBlock[] {
    const { file, keepsFile } = this.#options
    try {
      return readKeyFile(file)
    } catch (error) {
      // Postgres has all keys; the process that maintains the file reports what is wrong with it.
      if (!keepsFile) return []
      throw error
    }
  }
}
