import {
  findNodeAtLocation,
  getNodeValue,
  parseTree,
  printParseErrorCode,
  type Node,
  type ParseError,
} from 'jsonc-parser'
import type { z } from 'zod'
import { inSlices } from './read-in-slices.ts'
import type { RuleSubject } from './rule-patterns.ts'
import { rulesSchema, type RulesFile } from './rules-schema.ts'

/**
 * Parses a rules file. A mistake anywhere makes the whole file invalid.
 * @throws Error whose text begins with the line
 */
export function readRules(text: string): RulesFile {
  return readStrictJson(text, rulesSchema)
}

/**
 * Parses a text of strict JSON by a schema.
 * @throws Error whose text begins with the line
 */
export function readStrictJson<T extends z.ZodType>(text: string, schema: T): z.output<T> {
  const root = jsonOf(text)
  const parsed = schema.safeParse(getNodeValue(root))
  if (parsed.success) return parsed.data
  const [first] = parsed.error.issues
  throw wrongAt(text, offsetOf(root, first!), `${pathText(first!)}${first!.message}`)
}

/**
 * Parses a text that `readRules` has already accepted in another thread. It parses in slices, so that ten thousand
 * rules hold the event loop no longer than one statement does.
 * @param nextSlice resolves when other work has run
 */
export async function readRulesInSlices(text: string, nextSlice: () => Promise<void>): Promise<RulesFile> {
  const read: Record<string, unknown[]> = {}
  await nextSlice()
  const sections = JSON.parse(text) as Record<string, readonly unknown[] | null>
  for (const [name, rules] of Object.entries(sections)) {
    if (rules === null) continue
    read[name] = await inSlices(rules, nextSlice, (some) => {
      const now: readonly object[] = rulesSchema.parse({ [name]: some })[name as keyof RulesFile] ?? []
      for (const rule of now) prepareSubject(rule)
      return now
    })
  }
  await nextSlice()
  return read as RulesFile
}

/** Compiles the patterns for users and groups. The first statement of a user matches those of all rules at once. */
function prepareSubject(rule: object): void {
  const { user, group }: Partial<RuleSubject> = rule
  user?.prepare()
  group?.prepare()
}

/** Parses strict JSON in which each key of an object appears once. */
function jsonOf(text: string): Node {
  const errors: ParseError[] = []
  const root = parseTree(text, errors, { disallowComments: true, allowTrailingComma: false })
  const [error] = errors
  if (error || !root) {
    throw wrongAt(
      text,
      error?.offset ?? 0,
      `The file is not JSON: ${error ? printParseErrorCode(error.error) : 'it is empty'}`,
    )
  }
  refuseOddKeys(text, root)
  return root
}

function refuseOddKeys(text: string, node: Node): void {
  if (node.type === 'object') {
    const keys = new Set<string>()
    for (const property of node.children ?? []) {
      const key = String(property.children?.[0]?.value)
      if (keys.has(key) || key === '__proto__') {
        throw wrongAt(
          text,
          property.offset,
          `The key ${JSON.stringify(key)} ${keys.has(key) ? 'occurs twice' : 'is not known'}`,
        )
      }
      keys.add(key)
    }
  }
  for (const child of node.children ?? []) refuseOddKeys(text, child)
}

/** The offset of the value that an issue is about; for an unknown key the offset of that key. */
function offsetOf(root: Node, issue: z.core.$ZodIssue): number {
  const key = issue.code === 'unrecognized_keys' ? issue.keys[0] : undefined
  const path = [...issue.path, ...(key === undefined ? [] : [key])].filter((part) => typeof part !== 'symbol')
  for (let length = path.length; length > 0; length--) {
    const found = findNodeAtLocation(root, path.slice(0, length))
    if (found) return (found.parent?.type === 'property' ? found.parent : found).offset
  }
  return root.offset
}

function pathText({ path }: z.core.$ZodIssue): string {
  return path.length === 0
    ? ''
    : `${path.map((part) => (typeof part === 'number' ? part + 1 : String(part))).join(', ')}: `
}

function wrongAt(text: string, offset: number, message: string): Error {
  return new Error(`line ${text.slice(0, offset).split('\n').length}: ${message}`)
}
