import { parentPort, workerData } from 'node:worker_threads'
import { soundPatterns } from '../../security/rules/java-regex.ts'
import { readRules } from '../../security/rules/read-rules.ts'
import { textVersion } from './text-version.ts'
import type { ReadRules, RulesToRead } from './read-rules-apart.ts'

// The program of a thread that reads a rules file whole, tells what became of it, and ends.

const { text, key } = workerData as RulesToRead
parentPort!.postMessage(read())

function read(): ReadRules {
  try {
    readRules(text)
    return { sound: soundPatterns(), version: textVersion(text, { key, secret: false }) }
  } catch (error) {
    return { wrong: (error as Error).message }
  }
}
