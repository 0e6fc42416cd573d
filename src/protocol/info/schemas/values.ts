import { z } from 'zod'

/*
 * The bodies of the REST interface as clients see them, for `/openapi.json` and for tests that check real answers.
 * Fields are only ever added, so objects accept unknown keys.
 */

/** A body that a builder returns. */
export type Body<T> = T extends object ? { readonly [K in keyof T]: Body<T[K]> } : T

/** Without the keys that the schema does not name. */
export type KnownKeys<T> = T extends object ? { [K in keyof T as string extends K ? never : K]: KnownKeys<T[K]> } : T

export const durationSchema = z
  .string()
  .regex(/^\d+\.\d\d(ns|us|ms|s|m)$/)
  .describe('A number with its unit: ns, us, ms, s or m')

export const dataSize = z
  .string()
  .regex(/^\d+(\.\d\d)?(B|kB)$/)
  .describe('A number with its unit: B, or kB (1024 bytes)')

export const timestampSchema = z.iso.datetime({ offset: true })

export const count = z.int().min(0)

export const uri = z.url()

export const location = z.looseObject({ lineNumber: z.int().min(1), columnNumber: z.int().min(1) })

export const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
})

export const errorCode = z.looseObject({ code: z.int(), name: z.string(), type: z.string() })

export const queryState = z.enum(['QUEUED', 'PLANNING', 'STARTING', 'RUNNING', 'FINISHING', 'FINISHED', 'FAILED'])
