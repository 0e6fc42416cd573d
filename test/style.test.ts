import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
// Part of vite, in the locked version.
import { transform } from 'esbuild'
import { beforeAll, expect, it } from 'vitest'
import { parseAst } from 'vitest/node'

const root = new URL('..', import.meta.url).pathname

/** Words that `docs/style.md` forbids in names, comments and titles. Text in backticks is code, and may have them. */
const WORDS = 'told|his|hers?|him|he|she|whom|whoever'

/** Identifiers that have a forbidden word, alone or as a part: `toldOf`, `isTold`, `_his`. */
const NAMES = new RegExp(
  `^[#_]*(?:${WORDS}|tells?|who|whose|nobody|everybody|somebody)(?![a-z0-9_])|letGo|goTheWay|cutShort|` +
    '(?:Told|Tells?|His|Hers?|Him|Who|Whom|Whose|Whoever|Nobody|Everybody|Somebody)(?![a-z])',
)

/**
 * Words that mean too much as a part of a name: `placeOf`, `wayFrom`, `TURN_MS`, `periodEnds`. `endsAt` says more, and
 * `endsWith` is a method of texts.
 */
const VAGUE = new RegExp(
  '(?:^[#_]*(?:places?|ways?|turns?|ends(?!With$|At$))|(?:Places?|Ways?|Turns?|Ends(?!At$)))(?![a-z])|' +
    '(?:^|_)(?:PLACES?|WAYS?|TURNS?|ENDS)(?:_|$)',
)

/** Sentences without a noun as their subject. */
const SENTENCES =
  /(?:^|[.:?!] )(?:Of|Who|Whom|Whose|Whoever|What|Whatever|Which|Whichever|Those|Nobody|Ones? (?:that|who|whose|which)) /

/** Forms of the old dialect anywhere in a comment or a title. */
const FORMS = new RegExp(
  `\\b(?:${WORDS}|one's|(?:no|every|some|any)body's|those who)\\b|[,;] who\\b|\\b(?:and|or|but|for) who\\b|` +
    `\\bof ones? (?:that|who|whose)\\b|\\bis nothing of\\b`,
)

/** Titles that continue a sentence of their `describe`, or begin without a noun. */
const CONTINUATIONS =
  /^(?:of|with|without|in|on|over|by|from|if|for|before|after|while|when|that|which|who|whose|what|those|named|given|nobody|never if)\b/

/** Verbs that begin the title of a test. Without a `describe`, such a test has no subject. */
const VERBS =
  /^(?:is|are|has|have|can|cannot|may|does|do|never|accepts|answers|appends|applies|begins|continues|counts|cuts|delivers|ends|fails|finds|gives|ignores|keeps|lists|makes|names|prints|reads|records|refuses|removes|reports|retries|returns|rotates|sends|shows|skips|starts|stops|takes|throws|waits|writes)\b/

interface SourceFile {
  readonly name: string
  readonly names: readonly string[]
  /** The names of code that are not only names of properties. */
  readonly bindings: ReadonlySet<string>
  readonly comments: readonly string[]
  readonly titles: readonly Title[]
}
const files: SourceFile[] = []

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? sources(join(folder, entry.name))
      : entry.name.endsWith('.ts') && !entry.isSymbolicLink()
        ? [join(root, folder, entry.name)]
        : [],
  )
}

beforeAll(async () => {
  for (const path of [...sources('src'), ...sources('test')]) {
    const text = readFileSync(path, 'utf8')
    const { code } = await transform(text, { loader: 'ts', target: 'esnext' })
    const name = relative(root, path)
    const nodes = [...nodesIn(parseAst(code) as unknown as SyntaxNode, false)]
    files.push({
      name,
      names: namesIn(text, nodes),
      bindings: bindingsIn(nodes),
      comments: commentsIn(text),
      titles: name.startsWith('test/') ? nodes.flatMap(titleOf) : [],
    })
  }
  expect(files.length).toBeGreaterThan(1_500)
})

interface SyntaxNode {
  readonly type: string
  readonly [field: string]: unknown
}
const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

const childrenOf = (node: SyntaxNode): readonly SyntaxNode[] => Object.values(node).flat().filter(isNode)

interface FoundNode {
  readonly node: SyntaxNode
  /** Whether the node is inside a `describe`. */
  readonly inside: boolean
}

function* nodesIn(node: SyntaxNode, inside: boolean): Generator<FoundNode> {
  yield { node, inside }
  const within = inside || (node.type === 'CallExpression' && baseOf(node['callee']) === 'describe')
  for (const child of childrenOf(node)) yield* nodesIn(child, within)
}

/** Names of types, and of properties that a type declares: esbuild leaves them out. */
const TYPE_NAMES = /^\s*(?:export )?(?:interface|type|readonly) (\w+)/gm

function namesIn(text: string, nodes: readonly FoundNode[]): readonly string[] {
  const ofTypes = [...text.matchAll(TYPE_NAMES)].map(([, name]) => name!)
  const ofCode = nodes.flatMap(({ node: { name } }) => (typeof name === 'string' ? [name] : []))
  return [...new Set([...ofCode, ...ofTypes])]
}

function bindingsIn(nodes: readonly FoundNode[]): ReadonlySet<string> {
  const properties = new Set<unknown>()
  for (const { node } of nodes) {
    if (node.type === 'MemberExpression' && node['computed'] !== true) properties.add(node['property'])
    if (node.type === 'Property' && node['shorthand'] !== true) properties.add(node['key'])
  }
  return new Set(
    nodes.flatMap(({ node }) => (typeof node['name'] === 'string' && !properties.has(node) ? [node['name']] : [])),
  )
}

const LINE_COMMENT = /^\s*\/\/ ?(.*)$/
/** A comment after code. The code before it has no open quote. */
const CLOSING_COMMENT = /^(.*\S)\s+(?:\/\/|\/\*\*?) (.*?)(?:\*\/.*)?$/

/** The texts of all comments. Lines of `//` that follow each other are one comment. */
function commentsIn(text: string): readonly string[] {
  const comments: string[] = []
  let open: { readonly kind: 'line' | 'block'; readonly parts: string[] } | undefined
  const close = (): void => {
    if (open) comments.push(open.parts.join(' ').trim())
    open = undefined
  }
  for (const line of text.split('\n')) {
    const ofLine = LINE_COMMENT.exec(line)?.[1]
    if (open?.kind !== 'block' && ofLine !== undefined) {
      open ??= { kind: 'line', parts: [] }
      open.parts.push(ofLine)
      continue
    }
    if (open?.kind === 'line') close()
    if (open || /^\s*\/\*/.test(line)) {
      open ??= { kind: 'block', parts: [] }
      open.parts.push(line.replace(/^\s*(?:\/\*+|\*(?!\/)) ?/, '').replace(/\*\/.*$/, ''))
      if (line.includes('*/')) close()
      continue
    }
    const [, code, comment] = CLOSING_COMMENT.exec(line) ?? []
    if (comment !== undefined && (code!.match(/['"`]/g) ?? []).length % 2 === 0) comments.push(comment.trim())
  }
  close()
  return comments
}

interface Title {
  readonly text: string
  /** Whether the title is inside a `describe`, or in a table from which tests are made. */
  readonly inside: boolean
}

function textOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined
  if (node.type === 'Literal' && typeof node['value'] === 'string') return node['value']
  if (node.type !== 'TemplateLiteral') return undefined
  const quasis = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[]
  return quasis.map(({ value }) => value.cooked).join('…')
}

/** The function of a chain: `it` for `it.skipIf(…)('…')` and `it.each(…)('…')`. */
function baseOf(node: unknown): unknown {
  if (!isNode(node)) return undefined
  return node.type === 'Identifier' ? node['name'] : baseOf(node['callee'] ?? node['object'] ?? node['tag'])
}

/** The title of a test or of its waits. */
function titleOf({ node, inside }: FoundNode): readonly Title[] {
  if (node.type === 'CallExpression') {
    const base = baseOf(node['callee'])
    const text = textOf((node['arguments'] as readonly unknown[])[0])
    if (text !== undefined && (base === 'describe' || base === 'it' || base === 'waitUntil'))
      return [{ text, inside: inside || base !== 'it' }]
  } else if (node.type === 'Property' && isNode(node['key']) && node['key']['name'] === 'title') {
    const text = textOf(node['value'])
    if (text !== undefined) return [{ text, inside: true }]
  }
  return []
}

function found(look: (file: SourceFile) => readonly string[]): readonly string[] {
  return files.flatMap((file) => look(file).map((text) => `${file.name}: ${text}`))
}

const withoutCode = (text: string): string => text.replaceAll(/`[^`]*`/g, '`…`')

it('identifiers do not use the words that docs/style.md forbids', () => {
  expect(found(({ names }) => names.filter((name) => NAMES.test(name)))).toEqual([])
})

it('identifiers do not use vague words, except as fields of recorded events', () => {
  const documented = readFileSync(join(root, 'docs/events.md'), 'utf8')
  const fields = new Set([...documented.matchAll(/(\w+)(?:: |` \|)/g)].map(([, field]) => field!))
  const isField = (name: string, { bindings }: SourceFile): boolean => fields.has(name) && !bindings.has(name)
  expect(found((file) => file.names.filter((name) => VAGUE.test(name) && !isField(name, file)))).toEqual([])
})

it('sentences in comments begin with a noun, a verb or a condition, and use no forbidden words', () => {
  const bad = (comment: string): boolean => {
    const text = withoutCode(comment)
    return SENTENCES.test(text) || FORMS.test(text)
  }
  expect(found(({ comments }) => comments.filter(bad))).toEqual([])
})

it('titles of tests have a subject and a verb, and use no forbidden words', () => {
  const bad = ({ text, inside }: Title): boolean => {
    const plain = withoutCode(text)
    return FORMS.test(plain) || CONTINUATIONS.test(plain) || (!inside && VERBS.test(plain))
  }
  expect(found(({ titles }) => titles.filter(bad).map(({ text }) => text))).toEqual([])
})
