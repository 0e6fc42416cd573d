import { setTimeout as sleep } from 'node:timers/promises'
import type { FileDigests } from '../../coordinator/query/stream/planned-data.ts'
import type { FileRecord, FileVersion } from '../../coordinator/system/file-record.ts'
import {
  watchFiles,
  watchFolder,
  type FileNews,
  type WatchedFiles,
  type WatchOptions,
} from '../../security/watched-files.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { SOURCE_NAMES } from '../../telemetry/metrics/process-metrics.ts'
import type { KeptTexts } from '../child-life.ts'
import { textVersion, type TextVersion } from './text-version.ts'

type SourceName = (typeof SOURCE_NAMES)[number]

export interface AccessTelemetry {
  readonly logger: Logger
  readonly meters: () => Meters
}

export interface Followed<T> {
  /** Setting that names the file, for the error message at exit. */
  readonly setting?: string
  /** Its text is recorded too, without secrets, so that decisions based on it can be derived from the log. */
  readonly recorded?: true
  /** Reads a changed text without blocking the event loop. The first text is read at once. */
  readonly readAgain?: (text: string) => Promise<{ readonly value: T; readonly text: TextVersion }>
  /**
   * Present if the path is a folder, whose `.json` files together are one text: see `watchFolder`. Returns further
   * files: a change of one of them is a change of the folder too.
   */
  readonly folderWith?: () => readonly string[]
  /** The number of rules in the file. */
  readonly entries?: (value: T) => number
}

/** A change waits this long until the log has recorded it. After this time it takes effect without the record. */
const RECORD_WAIT_MS = 5_000

/**
 * Files and key servers that decide which clients may come in and what they may do. Reports their changes to log and
 * metrics.
 */
export interface AccessSources {
  /**
   * Reads a file now and whenever it changes. The versions in force are recorded in the log while this coordinator
   * writes it.
   * @throws ExitError 64 when the file cannot be used at the start, and no previous process had one in force that could
   * stay
   */
  follow<T>(name: SourceName, path: string, read: (text: string) => T, followed?: Followed<T>): WatchedFiles<T>
  /** Digests of the files in force whose text is recorded, by name. */
  inForce(): FileDigests
  /** All files in force now. */
  versions(): readonly FileVersion[]
  /** From now on records the texts of files in force, and their changes; stops if undefined. */
  recordIn(record: FileRecord | undefined): void
  /** Reports that a changed file or set of keys is in force. */
  taken(name: SourceName, path: string): void
  /** Reports that a changed file or set of keys cannot be used. */
  broken(name: SourceName, path: string, error: Error): void
  /** Reports files that were broken before there was telemetry. */
  logBroken(): void
  /** Stops watching the files. */
  stop(): void
}

/**
 * @param key for digests of texts that are not recorded unchanged
 * @param telemetry undefined at first: nothing is reported until then
 * @param kept texts of the previous process
 */
export function createAccessSources(
  key: Buffer,
  telemetry: () => AccessTelemetry | undefined,
  kept: KeptTexts = NOTHING_KEPT,
): AccessSources {
  return new FollowedSources({ key, telemetry, kept })
}

interface FollowedSourcesDeps {
  readonly key: Buffer
  readonly telemetry: () => AccessTelemetry | undefined
  readonly kept: KeptTexts
}

class FollowedSources implements AccessSources {
  readonly #deps: FollowedSourcesDeps
  readonly #followed: Pick<WatchedFiles<unknown>, 'stop'>[] = []
  readonly #versions = new Map<SourceName, FileVersion>()
  /** Files whose current content cannot be used. */
  readonly #broken = new Map<SourceName, { readonly path: string; readonly error: Error }>()
  #record: FileRecord | undefined

  constructor(deps: FollowedSourcesDeps) {
    this.#deps = deps
  }

  follow<T>(name: SourceName, path: string, read: (text: string) => T, options: Followed<T> = {}): WatchedFiles<T> {
    const { key, kept } = this.#deps
    const { setting, recorded, entries } = options
    const inForceOf = (value: T, text: TextVersion): InForce<T> => ({
      value,
      version: { file: name, path, ...text, ...(entries && { entries: entries(value) }) },
    })
    const readNow = (text: string): InForce<T> =>
      inForceOf(read(text), textVersion(text, { key, secret: recorded !== true }))
    const takenNow = (text: string): InForce<T> => {
      const now = readNow(text)
      kept.keep(name, text)
      return now
    }
    const last = kept.last[name]
    const news: FileNews = {
      onReloaded: () => {
        this.#versions.set(name, file.value.version)
        this.taken(name, path)
      },
      onBroken: (error) => {
        this.broken(name, path, error)
        this.#record?.refused(file.value.version, error.message).catch(() => {})
      },
    }
    const again: Required<WatchOptions<string, InForce<T>>> = {
      before: () => (last === undefined ? undefined : { value: readNow(last) }),
      readAgain: async (text, before) => {
        const later = await options.readAgain?.(text)
        const next = later ? inForceOf(later.value, later.text) : readNow(text)
        await this.#announce(next.version, before.version)
        kept.keep(name, text)
        return next
      },
    }
    const file = orEnd(setting === undefined ? path : `${setting}: ${path}`, () =>
      watch({ path, folderWith: options.folderWith }, takenNow, news, again),
    )
    this.#versions.set(name, file.value.version)
    this.#followed.push(file)
    return {
      get value() {
        return file.value.value
      },
      stop: () => file.stop(),
    }
  }

  versions(): readonly FileVersion[] {
    return [...this.#versions.values()]
  }

  inForce(): FileDigests {
    const digests: Record<string, string> = {}
    for (const [name, { kept, digest }] of this.#versions) if (kept.as !== 'secret') digests[name] = digest
    return digests
  }

  recordIn(record: FileRecord | undefined): void {
    this.#record = record
    for (const version of this.#versions.values()) record?.keep(version).catch(() => {})
    for (const [name, { error }] of this.#broken) {
      const version = this.#versions.get(name)
      if (version) record?.refused(version, error.message).catch(() => {})
    }
  }

  taken(name: SourceName, path: string): void {
    const telemetry = this.#deps.telemetry()
    this.#broken.delete(name)
    telemetry?.meters().set('filesBroken', { file: name }, 0)
    telemetry?.logger.info('file.reloaded', { file: name, path }, 'The changed file was loaded and is in force')
  }

  broken(name: SourceName, path: string, error: Error): void {
    const telemetry = this.#deps.telemetry()
    this.#broken.set(name, { path, error })
    telemetry?.meters().set('filesBroken', { file: name }, 1)
    const fields = { file: name, path, reason: error.message }
    telemetry?.logger.error(
      'file.broken',
      fields,
      'The changed file could not be loaded: its earlier content stays in force',
    )
  }

  logBroken(): void {
    for (const [name, { path, error }] of this.#broken) this.broken(name, path, error)
  }

  stop(): void {
    for (const file of this.#followed) file.stop()
  }

  /**
   * Waits for the log's record of a change. If this process has lost the log, its next writer records what is in force
   * there.
   */
  async #announce(version: FileVersion, before: FileVersion): Promise<void> {
    const recorded = this.#record?.changed(version, before).catch(() => {})
    await Promise.race([recorded, sleep(RECORD_WAIT_MS, undefined, { ref: false })])
  }
}

/** Watches a file or a folder (see `Followed.folderWith`). */
function watch<T>(
  { path, folderWith }: { readonly path: string; readonly folderWith: (() => readonly string[]) | undefined },
  read: (text: string) => T,
  news: FileNews,
  { before, readAgain }: Required<WatchOptions<string, T>>,
): WatchedFiles<T> {
  return folderWith
    ? watchFolder(path, folderWith, read, news, { before, readAgain })
    : watchFiles([path], ([text]) => read(text), news, { before, readAgain: ([text], last) => readAgain(text, last) })
}

const NOTHING_KEPT: KeptTexts = { last: {}, keep: () => {} }

interface InForce<T> {
  readonly value: T
  readonly version: FileVersion
}

/** @throws ExitError 64 with one line when a part of the configuration cannot be made */
export function orEnd<T>(what: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `${what}: ${(error as Error).message}`)
  }
}
