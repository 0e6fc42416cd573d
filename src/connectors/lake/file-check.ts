import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hashFooter } from './lake-files.ts'
import { resolveInside } from './resolve-inside.ts'
import type { FoundSplit, LakeSplit } from './lake-split.ts'
import type { ConnectorContext } from '../spi/connector.ts'
import type { FileQuestion } from '../spi/table-source.ts'
import { changed } from './manifest-table.ts'
import { hasCode } from '../../shared/node-error.ts'

/**
 * Checks that the files of splits are still those that were listed, and that all values fit what their beginnings
 * showed.
 */
export interface FileCheck {
  /**
   * @throws EngineError TRANSACTION_CONFLICT when a file has changed; HIVE_BAD_DATA for a value that is not of its
   * column's type
   */
  verify(splits: readonly LakeSplit[]): Promise<void>
}

/** A file of a split, or a file that removes rows of it. */
type CheckedFile =
  | Exclude<LakeSplit, { empty: true }>
  | { readonly file: string; readonly size: number; readonly footer: string }

const MAX_KNOWN = 50_000
const MAX_LOOKED = 1_000

function isGone(error: Error): never {
  // ELOOP: a link to itself; ENOTDIR: below a path that is no longer a folder.
  throw hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP') ? changed() : error
}

export function createFileCheck(location: string, inspect: ConnectorContext['inspect']): FileCheck {
  /** Questions about values of files, with their answers. */
  const looked = new Map<string, Promise<unknown>>()

  /** Size and time are checked every time; the footer is read again only when the file has another size or time. */
  const footers = new Map<string, { readonly key: string; readonly footer: string }>()

  async function checkFile(split: CheckedFile): Promise<void> {
    const named = join(location, split.file)
    const stats = await stat(named, { bigint: true }).catch(isGone)
    // A pipe has the same size as an empty file.
    if (!stats.isFile() || Number(stats.size) !== split.size) throw changed()
    // A file of Quipu may have been copied since (a restored backup): its bytes count, not its time.
    if ('mtime' in split && String(stats.mtimeNs) !== split.mtime) throw changed()
    const key = `${stats.dev} ${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`
    let known = footers.get(named)
    if (known?.key !== key) {
      // A file that is the same as before is still within the location.
      const path = await resolveInside(location, named).catch(isGone)
      known = { key, footer: await hashFooter(path, split.size) }
      if (footers.size > MAX_KNOWN) footers.clear()
      footers.set(named, known)
    }
    if (known.footer !== split.footer) throw changed()
    if (!('format' in split)) return
    if (split.text?.checked) await look(textQuestion(named, split), key)
    for (const { source, present, finer } of split.columns)
      if (present && finer) await look({ kind: 'timesCheck', path: named, columns: [source] }, key)
  }

  /** Asks once for each state of a file. @param file names the state */
  function look(question: FileQuestion, file: string): Promise<unknown> {
    const key = `${file} ${JSON.stringify(question)}`
    let answer = looked.get(key)
    if (!answer) {
      answer = inspect(question)
      if (looked.size > MAX_LOOKED) looked.clear()
      looked.set(key, answer)
      answer.catch(() => looked.delete(key))
    }
    return answer
  }

  return {
    async verify(splits) {
      const byFile = new Map<string, CheckedFile>()
      for (const split of splits) {
        if ('empty' in split) continue
        // Scans of one file may read different columns.
        const finer = 'format' in split ? split.columns.filter((column) => column.finer).map(({ name }) => name) : []
        byFile.set(JSON.stringify([split.file, ...finer]), split)
        if ('written' in split) for (const by of split.removedBy ?? []) byFile.set(JSON.stringify([by.file]), by)
      }
      await Promise.all([...byFile.values()].map(checkFile))
    },
  }
}

function textQuestion(path: string, { text, columns }: FoundSplit): FileQuestion {
  const needs = columns.map(({ source, duckdbType, declared, blanks }) => ({
    name: source,
    type: duckdbType,
    declared: declared ?? false,
    blanks: blanks ?? false,
  }))
  if (text?.kind !== 'csv') {
    const { layout, isRecord } = text!
    return { kind: 'jsonCheck', path, layout, isRecord, needs }
  }
  const byField = new Map(needs.map(({ name, ...need }) => [name, need]))
  const fields = Array.from({ length: text.fields }, (_, field) => {
    return byField.get(`c${field}`) ?? { type: 'VARCHAR', declared: false, blanks: false }
  })
  return { kind: 'csvCheck', path, dialect: text.dialect, needs: fields }
}
