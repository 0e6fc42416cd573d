import type { SystemEvent } from './events.ts'
import type { SystemJournal } from './system-journal.ts'

/** The content of an access-control file at a time. */
export interface FileVersion {
  /** The purpose of the file. */
  readonly file: string
  readonly path: string
  /** See FileTaken. */
  readonly digest: string
  readonly bytes: number
  /** The number of rules. */
  readonly entries?: number
  /** How much of the file may be kept; with its text where it is kept. */
  readonly kept:
    | { readonly as: 'recorded' | 'redacted'; readonly text: string }
    | { readonly as: 'secret' | 'too_long' }
}

/** Records files in the log: which are in force, and which could not be taken. Rejects as an append does. */
export interface FileRecord {
  /**
   * Writes the text of a file that was in force when the coordinator claimed the log; ConfigurationLoaded names the
   * file.
   */
  keep(version: FileVersion): Promise<void>
  /** Resolves when the change and its text are valid: then decisions by this file can be derived from the log. */
  changed(version: FileVersion, before: FileVersion): Promise<void>
  refused(version: FileVersion, reason: string): Promise<void>
}

export interface FileRecordDeps {
  readonly journal: Pick<SystemJournal, 'record'>
  /** How many parts of a text the read models know; `caughtUp` says when they are complete. */
  readonly recordedParts: (digest: string) => Promise<number>
  /** Resolves when the read models hold everything that was in the log before this process wrote it. */
  readonly caughtUp: Promise<void>
}

/** Keeps an event small in memory and in the log, however long the rules are. */
const PART_CHARACTERS = 64 * 1024
const MAX_REASON = 500

/**
 * Writes a text once per digest. Where it is unknown whether it was written, it is written again, which does no harm.
 */
export function createFileRecord({ journal, recordedParts, caughtUp }: FileRecordDeps): FileRecord {
  const written = new Set<string>()

  async function keep({ digest, kept }: FileVersion): Promise<void> {
    if (!('text' in kept) || written.has(digest)) return
    written.add(digest)
    try {
      const parts = partsOf(kept.text)
      await caughtUp
      const there = await recordedParts(digest).catch(() => 0)
      if (there >= parts.length) return
      await Promise.all(
        parts.map((text, at) => journal.record('FileKept', { digest, part: at + 1, parts: parts.length, text })),
      )
    } catch (error) {
      written.delete(digest)
      throw error
    }
  }

  return {
    keep,
    async changed(version, before) {
      await keep(version)
      await journal.record('FileTaken', {
        ...recordedVersion(version),
        occasion: 'reload',
        before: before.digest,
        ...(before.entries === undefined ? {} : { entriesBefore: before.entries }),
      })
    },
    async refused({ file, path, digest }, reason) {
      await journal.record('FileRefused', { file, path, reason: reason.slice(0, MAX_REASON), inForce: digest })
    },
  }
}

/** A file in force in the form of an event, without its text. */
export function recordedVersion({ file, path, digest, bytes, entries, kept }: FileVersion): RecordedVersion {
  return { file, path, digest, bytes, text: kept.as, ...(entries === undefined ? {} : { entries }) }
}

type RecordedVersion = NonNullable<Extract<SystemEvent, { type: 'ConfigurationLoaded' }>['data']['files']>[number]

/** Cuts a text into parts; surrogate pairs stay together, so that each part is a valid text. */
function partsOf(text: string): readonly string[] {
  const parts: string[] = []
  for (let at = 0; at < text.length || parts.length === 0;) {
    let end = Math.min(at + PART_CHARACTERS, text.length)
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end--
    parts.push(text.slice(at, end))
    at = end
  }
  return parts
}
