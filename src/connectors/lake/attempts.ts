import { rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import type { EngineFile, WriteTarget, WrittenFile, WrittenRows } from '../spi/table-writer.ts'
import { describeChanges, type AskFiles } from './changed-rows.ts'
import { fileMode, makeFoldersLike } from './inherited-modes.ts'
import type { LakeFolders } from './lake-folders.ts'
import { hashFooter } from './lake-files.ts'
import { syncFile, setFileMode } from './open-files.ts'
import { makeFolder, syncFolder } from './version-chain.ts'

/** The folder of files that Quipu writes, in a table's folder: `_data/<query id>/<attempt>/…`. */
export const DATA_FOLDER = '_data'
const SAFE = /^[A-Za-z0-9][A-Za-z0-9._-]*$/

/** Folders of attempts to write rows. */
export function createAttempts(folders: LakeFolders, inspect: AskFiles): WrittenRows {
  async function tableFolder({ change }: WriteTarget): Promise<string> {
    const parent = await folders.schemaFolder(change.schema)
    // Making the folder would bring a dropped schema back.
    if (parent === undefined || !('table' in change)) {
      throw new EngineError('SCHEMA_NOT_FOUND', `Schema '${change.schema}' does not exist`)
    }
    return folders.objectFolder(parent, change.table)
  }

  function attemptFolder(table: string, { queryId }: WriteTarget, attempt: string): string {
    if (!SAFE.test(queryId) || !SAFE.test(attempt)) throw new Error(`not an attempt: ${queryId} ${attempt}`)
    return join(table, DATA_FOLDER, queryId, attempt)
  }

  async function seal(table: string, folder: string, file: EngineFile): Promise<WrittenFile> {
    if (dirname(file.path) !== folder) throw new Error(`${file.path} is not a file of ${folder}`)
    return {
      path: relative(table, file.path).split(sep).join('/'),
      rows: file.rows,
      bytes: file.bytes,
      footer: await hashFooter(file.path, file.bytes, async (opened) => {
        await setFileMode(opened, fileMode(await stat(folder)))
        await syncFile(opened)
      }),
      ...(file.columnBytes && { columnBytes: { ...file.columnBytes } }),
    }
  }

  return {
    async openAttempt(target, attempt) {
      const table = await tableFolder(target)
      const folder = attemptFolder(table, target, attempt)
      // The first version of a table has made its folder durable.
      if (target.baseVersion === 0) await makeFolder(table)
      await rm(folder, { recursive: true, force: true })
      await makeFoldersLike(table, folder)
      return folder
    },

    async sealAttempt(target, attempt, written) {
      const table = await tableFolder(target)
      const folder = attemptFolder(table, target, attempt)
      const full = written.filter(({ rows }) => rows > 0)
      const sealed = await Promise.all(full.map((file) => seal(table, folder, file)))
      if (sealed.length === 0) await rm(folder, { recursive: true, force: true })
      else for (let path = folder; path !== table; path = dirname(path)) await syncFolder(path)
      await syncFolder(table)
      const { change } = target
      if (change.kind !== 'changeRows') return sealed
      return describeChanges(change.operation, sealed, full.map(({ path }) => path), inspect) // prettier-ignore
    },

    async dropAttempt(target, attempt) {
      const table = await tableFolder(target).catch(() => undefined)
      if (table === undefined) return
      const folder = attemptFolder(table, target, attempt)
      // An engine that was just canceled may still be putting a file there.
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      // The parent folders are removed with the last attempt. The table's own folder stays: it may be getting its
      // manifest just now.
      await rmdir(dirname(folder))
        .then(() => rmdir(dirname(dirname(folder))))
        .catch(() => {})
    },
  }
}
