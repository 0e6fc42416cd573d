import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { repository } from './repository.ts'

export interface ComposeService {
  readonly command: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly healthcheck: { readonly test: readonly string[] }
}

/** The services of docker-compose.yml by their names. */
export const composeServices = (
  parse(readFileSync(join(repository, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
    readonly services: Readonly<Record<string, ComposeService>>
  }
).services

/** The services that run programs of Quipu. */
export const OURS = ['coordinator', 'coordinator-2', 'worker-1', 'worker-2'] as const
export type OurService = (typeof OURS)[number]

/**
 * The settings of a service, including the settings of the image.
 * @param here replaces names of containers and variables in a value by those of this machine
 */
export function settingsOf(name: OurService, here: (text: string) => string): Readonly<Record<string, string>> {
  const { environment } = composeServices[name]!
  return {
    QUIPU_HOST: '0.0.0.0',
    QUIPU_CATALOG_DIR: join(repository, 'etc', 'catalog'),
    ...Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, here(value)])),
  }
}
