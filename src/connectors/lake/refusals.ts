import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { dirname } from 'node:path'
import { EngineError } from '../../shared/engine-error.ts'
import type { Connector } from '../spi/connector.ts'
import { hasCode } from '../../shared/node-error.ts'

// A lake belongs to its operator, and Quipu is one user of it among others. If the operating system refuses access to
// Quipu, the client gets PERMISSION_DENIED, with a message that names the catalog and no path.

const REFUSED = ['EACCES', 'EPERM', 'EROFS']

/** The connector, with errors of the file system about permissions turned into PERMISSION_DENIED. */
export function withNamedRefusals(connector: Connector): Connector {
  const { catalog, writer } = connector
  return {
    ...withRefusals(connector, catalog, 'read'),
    ...(writer && { writer: withRefusals(writer, catalog, 'write') }),
  }
}

/**
 * Checks before a change is decided whether a folder may be changed, or, if it does not exist, its nearest parent.
 * @throws EngineError PERMISSION_DENIED; NOT_SUPPORTED when the file system does not allow the name
 */
export async function checkWritable(catalog: string, folder: string): Promise<void> {
  for (let path = folder; ; path = dirname(path)) {
    try {
      return await access(path, constants.W_OK | constants.X_OK)
    } catch (error) {
      if (hasCode(error, 'ENAMETOOLONG'))
        throw new EngineError('NOT_SUPPORTED', `The name is too long for the file system of catalog '${catalog}'`)
      if (!hasCode(error, 'ENOENT')) throw refusal(error, catalog, 'write')
    }
  }
}

/**
 * The object with methods that turn refusals into PERMISSION_DENIED. All methods are asynchronous, except getters of
 * settings.
 */
function withRefusals<T extends object>(object: T, catalog: string, what: 'read' | 'write'): T {
  const methods = Object.entries(object).map(([name, value]: [string, unknown]) => {
    if (typeof value !== 'function') return [name, value]
    const method = value as (...parameters: unknown[]) => unknown
    const refusing = (...parameters: unknown[]): unknown => {
      const result = method.apply(object, parameters)
      if (!(result instanceof Promise)) return result
      return result.catch((error: unknown) => {
        throw refusal(error, catalog, what)
      })
    }
    return [name, refusing]
  })
  return Object.fromEntries(methods) as T
}

function refusal(error: unknown, catalog: string, what: 'read' | 'write'): unknown {
  if (!hasCode(error, ...REFUSED)) return error
  const message = `Quipu runs as user ${ownName()}, who may not ${what} there in catalog '${catalog}'`
  // Retriable: its owner may grant the permission.
  return new EngineError('PERMISSION_DENIED', message, { cause: error, retry: 'later' })
}

function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.())
  }
}
