import { basename, dirname } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'

/** The characters that are encoded: they would hide the folder, lead elsewhere, be invalid, or be read as a pattern. */
// oxlint-disable-next-line no-control-regex
const ODD = /^[._]|[/%*?[\\=\u0000-\u001f\u007f]/g
/** Most file systems take 255 bytes; temporary names need some of them. */
const MAX_BYTES = 200

/**
 * The folder of a schema or table that Quipu makes: its SQL name, with `%2F` and the like for characters that a
 * folder's name must not have.
 * @throws EngineError NOT_SUPPORTED when it is empty or too long
 */
export function folderOfName(name: string): string {
  const folder = encoded(name)
  if (folder === '' || Buffer.byteLength(folder) > MAX_BYTES) {
    throw new EngineError('NOT_SUPPORTED', `Names must have 1 to ${MAX_BYTES} bytes: '${name.slice(0, 50)}'`)
  }
  return folder
}

/**
 * The folder of a schema until it has a manifest: readers do not see it.
 * @param unique differs for each attempt
 */
export function folderInTheMaking(queryId: QueryId, unique: string): string {
  return `.${queryId}-${unique}`
}

/** The query that made a folder of `folderInTheMaking`; undefined for other folders. */
export function makerOfFolder(folder: string): QueryId | undefined {
  const [, queryId] = /^\.(\w+)-[0-9a-f-]{36}$/.exec(folder) ?? []
  return queryId !== undefined && isQueryId(queryId) ? queryId : undefined
}

/** The SQL name of a folder: lower case; decodes the names of `folderOfName`. */
export function nameOfFolder(folder: string): string {
  const name = folder.replaceAll(/%[0-9A-F]{2}/g, (code) => String.fromCharCode(parseInt(code.slice(1), 16)))
  return (encoded(name) === folder ? name : folder).toLowerCase()
}

/** The schema and the name of a table's folder, for errors. */
export function tableOfFolder(folder: string): string {
  return `${nameOfFolder(basename(dirname(folder)))}.${nameOfFolder(basename(folder))}`
}

function encoded(name: string): string {
  return name.replaceAll(ODD, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
}
