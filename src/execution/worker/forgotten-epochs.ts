import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { hasCode } from '../../shared/node-error.ts'
import { parseJson } from '../../shared/parse-json.ts'
import { forgottenEpochsSchema, type ForgottenEpochs } from '../api/task.ts'

const notesSchema = z.array(forgottenEpochsSchema)
/** The largest number of notes, so that the file of a worker that never starts again does not grow. */
const MOST_NOTES = 16

/** Notes beside a worker's file of epochs that they were forgotten, so that a coordinator can record it in the log. */
export function noteForgottenEpochs(folder: string, note: ForgottenEpochs): void {
  write(folder, [...readForgottenEpochs(folder), note].slice(-MOST_NOTES))
}

/** The notes that are not recorded in the log yet, the oldest first; empty when the file has no valid notes. */
export function readForgottenEpochs(folder: string): readonly ForgottenEpochs[] {
  try {
    const parsed = notesSchema.safeParse(parseJson(readFileSync(fileIn(folder), 'utf8')))
    return parsed.success ? parsed.data : []
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

/** Removes a note once it is in the log. */
export function dropForgottenEpochs(folder: string, id: string): void {
  const left = readForgottenEpochs(folder).filter((note) => note.id !== id)
  if (left.length > 0) write(folder, left)
  else rmSync(fileIn(folder), { force: true })
}

function fileIn(folder: string): string {
  return join(folder, 'epochs-forgotten.json')
}

function write(folder: string, notes: readonly ForgottenEpochs[]): void {
  const fresh = `${fileIn(folder)}.tmp`
  writeFileSync(fresh, JSON.stringify(notes), { mode: 0o600 })
  renameSync(fresh, fileIn(folder))
}
