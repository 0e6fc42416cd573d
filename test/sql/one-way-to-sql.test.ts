import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAst } from 'vitest/node'
import { createSqlFrontEnd } from '../../src/sql/create-front-end.ts'
import { functionFamilies } from '../../src/sql/functions/function-table.ts'
import { codeOfModule, codeOfSource, literal, name, sql, type Sql } from '../../src/duckdb/text/sql.ts'
import { template } from '../../src/duckdb/text/template.ts'

// SQL for an engine is made only from the pieces of `src/duckdb/text`, which become text once. These tests check the
// rules that types cannot express, on the syntax trees of the compiled code.

const root = new URL('../../', import.meta.url).pathname

interface Node {
  readonly type: string
  readonly [field: string]: unknown
}

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? sources(join(folder, entry.name))
      : entry.name.endsWith('.ts')
        ? [join(folder, entry.name)]
        : [],
  )
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

/** Yields every node with its parent. */
function* nodesOf(value: unknown, around: Node | undefined): Generator<readonly [Node, Node | undefined]> {
  if (Array.isArray(value)) for (const each of value) yield* nodesOf(each, around)
  else if (isNode(value)) {
    yield [value, around]
    for (const child of Object.values(value)) yield* nodesOf(child, value)
  }
}

const paths = ['src/duckdb', 'src/sql'].flatMap((room) => sources(join(root, room)))

const files = paths.map((file) => {
  const path = relative(join(root, 'src'), file)
  const built = join(root, 'dist', path.replace(/\.ts$/, '.js'))
  const nodes = (): readonly (readonly [Node, Node | undefined])[] => [
    ...nodesOf(parseAst(readFileSync(built, 'utf8')) as unknown, undefined),
  ]
  return { path, text: readFileSync(file, 'utf8'), nodes }
})
type File = (typeof files)[number]

const inside = ({ path }: File, ...folders: readonly string[]): boolean =>
  folders.some((folder) => path.startsWith(`${folder}/`))

/** Lists the files that use one of these names. */
function using(...identifiers: readonly string[]): string[] {
  const word = new RegExp(String.raw`\b(?:${identifiers.join('|')})`)
  return files.filter((file) => !inside(file, 'duckdb/text') && word.test(file.text)).map(({ path }) => path)
}

const textOf = (quasi: unknown): string => (quasi as { readonly value: { readonly cooked: string } }).value.cooked

/** Lists strings that are concatenated without a tag: `…${x}…` or 'a' + x. */
function puttingTogether({ nodes }: File): string[] {
  return nodes().flatMap(([node, around]) => {
    if (node.type === 'TemplateLiteral') {
      const tagged = around?.type === 'TaggedTemplateExpression'
      const pieces = (node['quasis'] as readonly unknown[]).map(textOf)
      return tagged || pieces.length === 1 ? [] : [pieces.join('${}')]
    }
    if (node.type !== 'BinaryExpression' || node['operator'] !== '+') return []
    return [node['left'], node['right']].flatMap((side) =>
      isNode(side) && side.type === 'Literal' && typeof side['value'] === 'string' ? [`${side['value']}$\{}`] : [],
    )
  })
}

/** Matches SQL of DuckDB, and no message of Quipu. */
const ENGINE_WORDS =
  /\b[qtu]_[a-z]\w*\(|\b(?:TRY_)?CAST\(|\blist_transform\(|\bstruct_extract\(|\blambda \$|SELECT \$|\bOVER \(|\bEND\b| AS \$|\bcoalesce\(/

describe('The construction of SQL', () => {
  it('makes text only at the end of rendering', () => {
    expect(using('toText')).toEqual(['sql/renderer/render.ts', 'sql/types/duckdb-representation.ts'])
  })

  it('takes code only from the source', () => {
    expect(using('codeOfModule', 'codeOfSource')).toEqual([])
    expect(using('endOfModules')).toEqual(['sql/create-front-end.ts'])
    expect(using(String.raw`template\(`).filter((path) => !/^(?:sql\/functions|duckdb\/macros)\//.test(path))).toEqual(
      [],
    )
  })

  it('makes no code from text once a front end exists', () => {
    createSqlFrontEnd()
    expect(() => codeOfModule('x')).toThrow('while the program starts')
    expect(() => template('x')).toThrow('while the program starts')
    expect(() => codeOfSource(['x'] as unknown as TemplateStringsArray, 0, 0, 1)).toThrow(TypeError)
    expect(Object.keys(functionFamilies())).not.toEqual([])
  })

  it('does not mix up pieces and texts', () => {
    expect(() => `${literal('x') as unknown as string}`).toThrow(TypeError)
    expect(() => sql`SELECT ${'x' as unknown as Sql}`).toThrow(TypeError)
    expect(() => name('a\0b')).toThrow()
  })

  it('uses its tags only as tags', () => {
    const called = files.flatMap((file) =>
      inside(file, 'duckdb/text')
        ? []
        : file.nodes().flatMap(([node]) => {
            const callee = node.type === 'CallExpression' ? (node['callee'] as Node) : undefined
            const isFill =
              callee?.type === 'MemberExpression' &&
              (callee['property'] as Node)['name'] === 'fill' &&
              (callee['object'] as Node)['name'] === 'context'
            return callee?.['name'] === 'sql' || isFill ? [file.path] : []
          }),
    )
    expect(called).toEqual([])
  })

  it('puts no piece between quotes of the code', () => {
    const open = files.flatMap((file) =>
      file.nodes().flatMap(([node]) => {
        if (node.type !== 'TaggedTemplateExpression') return []
        // String.raw makes regular expressions, not SQL.
        if ((node['tag'] as Node).type !== 'Identifier') return []
        const written = ((node['quasi'] as Node)['quasis'] as readonly unknown[]).map(textOf)
        const isOpen = (text: string): boolean => /['"]/.test(text.replaceAll(/'[^']*'|"[^"]*"/g, ''))
        return written.filter(isOpen).map((text) => `${file.path}: ${text}`)
      }),
    )
    expect(open).toEqual([])
  })

  it('concatenates no SQL as strings', () => {
    // Templates of the function table and macros are strings only while the program starts. They cannot be made
    // later.
    const own = files.filter(
      (file) => !inside(file, 'duckdb/text', 'duckdb/macros', 'sql/syntax', 'sql/functions/families'),
    )
    const found = own.flatMap((file) =>
      puttingTogether(file)
        .filter((text) => ENGINE_WORDS.test(text))
        .map((text) => `${file.path}: ${text}`),
    )
    expect(found).toEqual([
      // Macros are made once, from the source.
      'duckdb/engine-setup.ts: CREATE OR REPLACE MACRO ${} AS ${}',
    ])
  })

  it('parses only the text of clients', () => {
    const parsers = ['parseStatement', 'parseWithParameters']
    const callers = files.flatMap((file) =>
      inside(file, 'sql/syntax')
        ? []
        : file.nodes().flatMap(([node]) => {
            const callee = node.type === 'CallExpression' ? (node['callee'] as Node)['name'] : undefined
            return parsers.includes(callee as string) ? [file.path] : []
          }),
    )
    // The text of a view, which a client wrote; and the text that a client sent.
    expect(callers).toEqual(['sql/analyzer/resolve.ts', 'sql/parsed-statement.ts'])
  })

  it('uses no casts around its types', () => {
    const cast = /\bas (?:any|never)\b|\bas unknown as\b/
    expect(files.filter(({ text }) => cast.test(text)).map(({ path }) => path)).toEqual([
      // A binding of DuckDB, and a walk over a syntax tree.
      'duckdb/scripts/register.ts',
      'sql/syntax/tree.ts',
    ])
  })

  it('writes TRY only through `tried`, so that its operand has its own vector', () => {
    const bare = paths.flatMap((path) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => /\bTRY\((?!least\()/.test(line) && !/^\s*(\*|\/\/|\/\*\*)/.test(line))
        .map((line) => `${relative(root, path)}: ${line.trim()}`),
    )
    expect(bare).toEqual([])
  })
})
