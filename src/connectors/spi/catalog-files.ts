import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import type { Catalogs } from './catalogs.ts'
import type { Connector, ConnectorContext, ConnectorFactory } from './connector.ts'
import { hasCode } from '../../shared/node-error.ts'

const NAME = /^[a-z][a-z0-9_]*$/
const fileSchema = z.looseObject({ connector: z.string() })

/**
 * Loads the catalogs of a folder: each `<name>.json` is one, `{"connector": …}` and that connector's own properties. A
 * folder that does not exist has no catalogs.
 * @throws ExitError 64 with one line that names the broken file and its fault
 */
export function loadCatalogs(
  folder: string,
  factories: readonly ConnectorFactory[],
  context: Omit<ConnectorContext, 'catalogDir'>,
): Catalogs {
  const connectors = new Map<string, Connector>()
  for (const file of catalogFiles(folder)) {
    const path = join(folder, file)
    const name = file.slice(0, -'.json'.length)
    try {
      if (!NAME.test(name)) throw new Error('the name of a catalog may only have lower-case letters, digits and _')
      const properties = fileSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
      const factory = factories.find(({ connectorName }) => connectorName === properties.connector)
      if (!factory) {
        const known = factories.map(({ connectorName }) => connectorName).join(', ')
        throw new Error(`the connector '${properties.connector}' is unknown; known connectors are ${known}`)
      }
      connectors.set(name, factory.create(name, properties, { ...context, catalogDir: folder }))
    } catch (cause) {
      throw new ExitError(exitCodes.configuration, `Catalog file '${path}': ${reason(cause)}`, { cause })
    }
  }
  return createCatalogs(connectors)
}

/** Catalogs from existing connectors; for tests and programs without catalog files. */
export function createCatalogs(connectors: ReadonlyMap<string, Connector>): Catalogs {
  const names = [...connectors.keys()].sort()
  return { names: () => names, get: (catalog) => connectors.get(catalog) }
}

/** The folders that the engines of a process must be allowed to read. */
export function allowedDirectories(catalogs: Catalogs): string[] {
  return [...new Set(catalogs.names().flatMap((name) => catalogs.get(name)!.allowedDirectories()))]
}

function catalogFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((file) => file.endsWith('.json'))
      .sort()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw new ExitError(exitCodes.configuration, `Catalog folder '${folder}' cannot be read: ${reason(error)}`)
  }
}

function reason(error: unknown): string {
  if (error instanceof Error) {
    const text = error instanceof z.ZodError ? z.prettifyError(error) : error.message
    return text.replaceAll(/\s+/g, ' ').trim()
  }
  return String(error)
}
