import { parentPort, workerData } from 'node:worker_threads'
import { readRoutingRules } from '../../coordinator/clusters/routing/routing-rules.ts'
import { readGroupRules } from '../../coordinator/dispatch/groups/group-rules.ts'
import { readPropertyRules } from '../../coordinator/dispatch/property-rules.ts'
import { soundPatterns } from '../../security/rules/java-regex.ts'
import { readRules } from '../../security/rules/read-rules.ts'
import { textVersion } from './text-version.ts'
import type { ReadApart, TextToRead } from './read-apart.ts'

// The program of a thread that reads a whole file, reports the result and ends.

const readers: Readonly<Record<TextToRead['file'], (text: string) => unknown>> = {
  rules: readRules,
  resource_groups: readGroupRules,
  session_properties: readPropertyRules,
  'routing-rules': readRoutingRules,
}

const { file, text, key } = workerData as TextToRead
parentPort!.postMessage(read())

function read(): ReadApart {
  try {
    readers[file](text)
    return { sound: soundPatterns(), version: textVersion(text, { key, secret: false }) }
  } catch (error) {
    return { wrong: (error as Error).message }
  }
}
