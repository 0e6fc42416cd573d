import { macros } from '../../duckdb/engine-setup.ts'
import { tokensOfSql, type Sql } from '../../duckdb/text/sql.ts'

// DuckDB expands macros with their arguments while it binds: an argument used twice in a body is bound twice, and
// macros call macros. A short text can therefore become a huge expression.

interface Macro {
  readonly parameters: readonly string[]
  readonly body: string
}

interface Cost {
  /** The number of expressions in the expanded macro, without its arguments. */
  readonly own: number
  /** The number of times each argument is bound. */
  readonly uses: readonly number[]
  /** Whether each argument stands in a lambda that evaluates it for each item of a list. */
  readonly loops: readonly boolean[]
  /** Whether each argument stands in any lambda, including one that only binds a value to a name. */
  readonly inLambdas: readonly boolean[]
}

let definitions: ReadonlyMap<string, Macro> | undefined
const costs = new Map<string, Cost>()

function definitionOf(name: string): Macro | undefined {
  definitions ??= new Map(
    macros.flatMap((statement) => {
      const match = /MACRO (\w+)\(([^)]*)\) AS ([^]*)$/.exec(statement)
      if (match === null) return []
      const parameters = match[2]!.split(',').map((parameter) => parameter.trim().split(/\s*:=/)[0]!)
      return [[match[1]!, { parameters, body: match[3]! }] as const]
    }),
  )
  return definitions.get(name)
}

function costOf(name: string): Cost | undefined {
  const known = costs.get(name)
  if (known !== undefined) return known
  const macro = definitionOf(name)
  if (macro === undefined) return undefined
  // Guards against a macro that calls itself; DuckDB refuses such macros.
  costs.set(name, {
    own: 1,
    uses: macro.parameters.map(() => 1),
    loops: macro.parameters.map(() => false),
    inLambdas: macro.parameters.map(() => false),
  })
  const cost = costOfBody(macro)
  costs.set(name, cost)
  return cost
}

const TOKEN = /'(?:[^']|'')*'|[A-Za-z_]\w*|\d+(?:\.\d+)?|[(),]|[^\sA-Za-z_\d(),']/g

/** A word of code, or the number of an operand. */
type Word = string | number

/** The cost of a piece after its macros are expanded; operands are found by identity. */
export function costOfSql(piece: Sql, operands: readonly (Sql | undefined)[]): Cost {
  const known = new Map<Sql, number>()
  operands.forEach((operand, i) => {
    if (operand !== undefined && !known.has(operand)) known.set(operand, i)
  })
  const words: Word[] = []
  for (const token of tokensOfSql(piece, known)) {
    if (token.kind === 'code') for (const word of wordsOf(token.text)) words.push(word)
    else words.push(token.kind === 'known' ? token.index : LEAF)
  }
  return costOfWords(words, operands.length)
}

/** Cached words of the code between operands, which comes from a limited number of templates. */
const knownWords = new Map<string, readonly string[]>()
const MOST_KNOWN = 2000
const LONGEST_KNOWN = 400

function wordsOf(code: string): readonly string[] {
  const known = knownWords.get(code)
  if (known !== undefined) return known
  const words = code.match(TOKEN) ?? []
  if (code.length <= LONGEST_KNOWN) {
    if (knownWords.size >= MOST_KNOWN) knownWords.clear()
    knownWords.set(code, words)
  }
  return words
}

/** Stands for a name or a literal, which count as one expression. */
const LEAF = `''`

function costOfBody({ body, parameters }: Macro): Cost {
  const words = wordsOf(body).map((word): Word => {
    const index = parameters.indexOf(word)
    return index < 0 ? word : index
  })
  return costOfWords(words, parameters.length)
}

/** Counts the expressions after macros are expanded, and the uses of each operand. */
function costOfWords(words: readonly Word[], operands: number): Cost {
  const uses = Array.from({ length: operands }, () => 0)
  const loops = Array.from({ length: operands }, () => false)
  const inLambdas = Array.from({ length: operands }, () => false)
  let own = 0
  let position = 0
  /**
   * Visits the words up to the closing parenthesis, the arguments of the enclosing call. `factor` is the number of
   * times they are bound.
   */
  const visit = (factor: number, callee: Cost | undefined, around: boolean, inside: boolean, names = false): void => {
    let argument = 0
    let inLambda = around
    let inAny = inside
    const current = (): number => (callee === undefined ? factor : factor * Math.max(callee.uses[argument] ?? 1, 0))
    while (position < words.length) {
      const word = words[position++]!
      if (word === ')') return
      if (word === ',') {
        argument++
        continue
      }
      const looped = inLambda || callee?.loops[argument] === true
      const named = inAny || callee?.inLambdas[argument] === true
      if (word === '(') {
        visit(current(), undefined, looped, named)
        continue
      }
      if (word === 'lambda') {
        inAny = true
        if (!names) inLambda = true
      }
      if (typeof word === 'number') {
        uses[word]! += current()
        if (looped) loops[word] = true
        if (named) inLambdas[word] = true
      } else own += current()
      if (words[position] === '(' && typeof word === 'string' && /^[A-Za-z_]/.test(word)) {
        position++
        const macro = costOf(word)
        if (macro !== undefined) own += current() * macro.own
        // A list of one value only binds the value to a name: its lambda runs once.
        visit(current(), macro, looped, named, word === 'list_transform' && words[position] === '[')
      }
    }
  }
  visit(1, undefined, false, false)
  return { own, uses, loops, inLambdas }
}
