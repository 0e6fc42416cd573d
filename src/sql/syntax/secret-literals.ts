import type { Cast, Expression, FunctionCall, GenericLiteral } from './ast.ts'
import type { Identifier } from './ast-node.ts'
import type { JsonTable } from './ast-json.ts'
import type { Query, QueryBody, SelectItem } from './ast-query.ts'
import type { FunctionSpecification } from './ast-routines.ts'
import type { MergeInsert, Statement, UpdateAssignment } from './ast-statements.ts'
import { holdsSecret, isSecretName, namesSecret, holdsSecretWord, withoutUserInfo } from './secret-names.ts'
import { childrenOf, type AnyNode } from './tree.ts'
import { partsOfRows } from './values-of-rows.ts'
import {
  namesSecretField,
  namesSecretColumn,
  isSecretNamed,
  type Named,
  nameText,
  hasSecretPart,
} from './named-secrets.ts'

/** A node of the tree whose text must be redacted, and its value. */
export interface SecretNode {
  readonly kind: 'literal' | 'name'
  readonly start: number
  readonly end: number
  readonly value: string
}

export interface SecretNodes {
  readonly nodes: readonly SecretNode[]
  /** Whether a `?` stands at the position of a secret. */
  readonly parameters: boolean
}

export interface ParameterSecrets {
  /** Whether an INSERT without a column list targets a table with a secret's name among its columns. */
  readonly intoSecrets: boolean
  /** Whether arguments of this prepared statement are secrets; also true if the statement is unknown. */
  readonly ofPrepared: (name: string) => boolean
  /** The same for the text of EXECUTE IMMEDIATE; `text` is true if the text itself contains secrets. */
  readonly ofText: (sql: string) => { readonly text: boolean; readonly parameters: boolean }
}

/**
 * How closely a node relates to a secret's name. `all` also redacts numbers. `text` redacts numbers only if they are
 * long arguments (`substr(token, 1, 8)` and `sum(tokens) / 1000` reveal nothing).
 */
type Near = 'no' | 'text' | 'all'

/**
 * The literals of a statement that stand for secrets. A term is a comparison, a select item, an argument list or an
 * assignment; operands of AND and OR are separate terms. If a term names a secret anywhere, all its literals are
 * redacted, through all functions and subqueries. If it also names something that the statement makes of literals
 * (VALUES, a subquery's columns, a routine), those literals are redacted too.
 */
export function secretNodes(statement: Statement, parameters: ParameterSecrets): SecretNodes {
  const walk = new Walk(parameters)
  walk.mark(statement)
  walk.visit(statement, 'no', undefined)
  walk.followReferences()
  return { nodes: walk.nodes, parameters: walk.parameters }
}

const equalities: ReadonlySet<string> = new Set(['=', '<>', 'IS DISTINCT FROM'])

/** Nodes whose literals are part of the grammar. */
const fixed: ReadonlySet<string> = new Set(['Limit', 'FetchFirst', 'Offset'])

/** Nodes whose arguments may be names of secrets: `element_at(x, 'password')`, `ROW('password', 'x')`. */
const callers: ReadonlySet<string> = new Set([
  'FunctionCall',
  'Format',
  'ConcatExpression',
  'SubscriptExpression',
  'ArrayConstructor',
  'Row',
  'JsonObjectMember',
  'JsonPathInvocation',
  'Call',
  'CallArgument',
])

const expressions: ReadonlySet<string> = new Set<Expression['kind']>([
  'ComparisonExpression',
  'QuantifiedComparisonExpression',
  'BetweenPredicate',
  'InPredicate',
  'LikePredicate',
  'IsNullPredicate',
  'IsNotNullPredicate',
  'ArithmeticUnaryExpression',
  'ArithmeticBinaryExpression',
  'ConcatExpression',
  'AtTimeZone',
  'FunctionCall',
  'Listagg',
  'WindowOperation',
  'LambdaExpression',
  'NullIfExpression',
  'CoalesceExpression',
  'TryExpression',
  'Format',
  'Cast',
  'ArrayConstructor',
  'Row',
  'SubscriptExpression',
  'DereferenceExpression',
  'Trim',
  'Extract',
  'Normalize',
  'JsonExists',
  'JsonValue',
  'JsonQuery',
  'JsonObject',
  'JsonArray',
  'SubqueryExpression',
])

interface Marks {
  /** The value is a secret or is made of one. */
  readonly secret: boolean
  readonly equality: boolean
  /** The node names something that does not have a secret's name. */
  readonly refers: boolean
}

const unmarked: Marks = { secret: false, equality: false, refers: false }

class Walk {
  readonly #taken = new Map<AnyNode, SecretNode>()
  readonly #marks = new Map<AnyNode, Marks>()
  readonly #parameterSecrets: ParameterSecrets
  /** Parts that make rows or values of literals, which other parts of the statement may reference. */
  readonly #sources: AnyNode[] = []
  readonly #routines: FunctionSpecification[] = []
  #refersFromSecret = false
  #anySecret = false
  #root: AnyNode | undefined
  #queries = 0
  #collected = false
  parameters = false

  constructor(parameterSecrets: ParameterSecrets) {
    this.#parameterSecrets = parameterSecrets
  }

  get nodes(): SecretNode[] {
    return [...this.#taken.values()].toSorted((a, b) => a.start - b.start)
  }

  /** Marks each node once, bottom-up. */
  mark(node: AnyNode): Marks {
    this.#root ??= node
    let secret = false
    let equality = false
    let refers = false
    for (const child of childrenOf(node)) {
      const below = this.mark(child)
      equality ||= below.equality
      refers ||= below.refers
      secret ||= below.secret && passesUp(node, child)
      if (callers.has(node.kind) && isText(child) && namesSecret(child.value)) secret = true
      if (node.kind === 'JsonPathInvocation' && isText(child) && isSecretName(child.value)) secret = true
    }
    switch (node.kind) {
      case 'Identifier':
        secret = isSecretName((node as Identifier).value)
        refers = !secret
        break
      case 'FunctionCall':
        secret ||= isSecretNamed((node as FunctionCall).name)
        break
      case 'ComparisonExpression':
        equality ||= equalities.has((node as AnyNode & { operator: string }).operator)
        break
      case 'InPredicate':
        equality = true
        break
      case 'SubqueryExpression':
        secret = this.#outputsSecret((node as AnyNode & { query: Query }).query.body)
        break
      default:
        if (node.kind === 'Query') secret = false
    }
    const marks = secret || equality || refers ? { secret, equality, refers } : unmarked
    this.#marks.set(node, marks)
    return marks
  }

  #of(node: AnyNode | undefined): Marks {
    return (node && this.#marks.get(node)) ?? unmarked
  }

  #outputsSecret(body: QueryBody): boolean {
    switch (body.kind) {
      case 'QuerySpecification':
        return body.select.items.some((item) => this.#itemSecret(item))
      case 'SetOperation':
        return this.#outputsSecret(body.left) || this.#outputsSecret(body.right)
      case 'TableSubquery':
        return this.#outputsSecret(body.query.body)
      case 'Values':
        return body.rows.some((row) => this.#of(row).secret)
      case 'Table':
        return false
    }
  }

  #itemSecret(item: SelectItem): boolean {
    if (item.kind === 'AllColumns') return item.aliases.some(isSecretNamed)
    return isSecretNamed(item.alias) || this.#of(item.expression).secret
  }

  visit(node: AnyNode, near: Near, parent: AnyNode | undefined): void {
    if (fixed.has(node.kind)) return
    this.#take(node, near, parent)
    if (node.kind === 'IfExpression' || node.kind === 'SearchedCaseExpression' || node.kind === 'SimpleCaseExpression')
      return this.#visitChoice(node, near)
    let here = near
    if (near !== 'all' && expressions.has(node.kind)) {
      const { secret, equality, refers } = this.#of(node)
      if (secret) {
        here = stronger(near, equality ? 'all' : 'text')
        this.#anySecret = true
        this.#refersFromSecret ||= refers
      }
    }
    here = stronger(here, this.#nearByName(node))
    const isQuery = node.kind === 'Query'
    if (isQuery) this.#queries++
    if (!this.#collected && isSource(node, this.#queries)) this.#sources.push(node)
    if (!this.#collected && node.kind === 'FunctionSpecification') this.#routines.push(node as FunctionSpecification)
    const writes = node.kind === 'Insert' || node.kind === 'CreateTableAsSelect'
    for (const child of childrenOf(node)) {
      if (writes && child.kind === 'Query') this.#visitWritten(child, here, near)
      else this.visit(child, here, node)
    }
    if (isQuery) this.#queries--
  }

  /**
   * Visits the query of a statement that writes rows. Parts that become values of the rows are as near to a secret as
   * the target is; conditions are not.
   */
  #visitWritten(query: AnyNode, here: Near, near: Near): void {
    if (here === near) return this.visit(query, here, undefined)
    this.#queries++
    for (const { node, isValue } of partsOfRows(query)) this.visit(node, isValue ? here : near, undefined)
    this.#queries--
  }

  /** The condition of IF or CASE does not make its results secrets. */
  #visitChoice(node: AnyNode, near: Near): void {
    const parts = childrenOf(node)
    if (node.kind === 'IfExpression') return this.#visitGroups(node, near, [parts.slice(0, 1), parts.slice(1)])
    const whens = parts.filter(({ kind }) => kind === 'WhenClause').map((when) => childrenOf(when))
    const conditions = whens.map((when) => when[0]!)
    const operand = node.kind === 'SimpleCaseExpression' ? parts.slice(0, 1) : []
    const results = [
      ...whens.map((when) => when[1]!),
      ...parts.slice(operand.length).filter(({ kind }) => kind !== 'WhenClause'),
    ]
    if (operand.length > 0) this.#visitGroups(node, near, [[...operand, ...conditions], results])
    else this.#visitGroups(node, near, [...conditions.map((condition) => [condition]), results])
  }

  #visitGroups(parent: AnyNode, near: Near, groups: readonly (readonly AnyNode[])[]): void {
    for (const group of groups) {
      const secret = group.length > 1 && group.some((one) => this.#of(one).secret)
      if (secret) {
        this.#anySecret = true
        this.#refersFromSecret ||= group.some((one) => this.#of(one).refers)
      }
      for (const one of group) this.visit(one, secret ? 'all' : near, parent)
    }
  }

  /** How near the children of a node are to a secret, according to the names in the node. */
  #nearByName(node: AnyNode): Near {
    const yes = (found: boolean): Near => {
      this.#anySecret ||= found
      return found ? 'all' : 'no'
    }
    const one = node as Named
    switch (node.kind) {
      case 'SingleColumn': {
        if (!isSecretNamed(one.alias)) return 'no'
        this.#anySecret = true
        const { refers } = this.#of(one.expression)
        this.#refersFromSecret ||= refers
        return refers ? 'text' : 'all'
      }
      case 'AllColumns':
        return yes((one.aliases ?? []).some(isSecretNamed))
      case 'UpdateAssignment':
        return this.#nearTarget(isSecretNamed(one.name), [(node as UpdateAssignment).value])
      case 'Property':
      case 'WithQuery':
      case 'CallArgument':
      case 'TableFunctionArgument':
        return yes(isSecretNamed(one.name) || (one.columnNames ?? []).some(isSecretNamed))
      case 'AssignmentStatement':
        return yes(isSecretNamed(one.target))
      case 'VariableDeclaration':
        return yes((one.names ?? []).some(isSecretNamed))
      case 'AliasedRelation':
        return yes(isSecretNamed(one.alias) || (one.columnNames ?? []).some(isSecretNamed))
      case 'ColumnDefinition':
      case 'SetSession':
      case 'SessionProperty':
      case 'CommentOn':
        return yes(hasSecretPart(one.name))
      case 'Insert':
        return yes(
          (one.columns?.some(isSecretNamed) ?? this.#parameterSecrets.intoSecrets) || isSecretNamed(one.target),
        )
      case 'MergeInsert': {
        const { columns, values } = node as MergeInsert
        const intoSecret = columns.length > 0 ? columns.some(isSecretNamed) : this.#parameterSecrets.intoSecrets
        return this.#nearTarget(intoSecret, values)
      }
      case 'CreateTableAsSelect':
        return yes((one.columnAliases ?? []).some(isSecretNamed) || isSecretNamed(one.name))
      case 'CreateView':
      case 'CreateMaterializedView':
        return yes(isSecretNamed(one.name))
      case 'Call':
      case 'TableFunctionInvocation': {
        const below = (one.arguments ?? []).some((each) => this.#of(each).secret)
        return yes(isSecretNamed(one.name) || below)
      }
      case 'JsonObjectMember':
        return yes(this.#of(node).secret)
      case 'Row':
      case 'ArrayConstructor':
        return yes(this.#of(node).secret && childrenOf(node).some((each) => isText(each) && namesSecret(each.value)))
      case 'SetOperation':
        return yes(this.#outputsSecret(node as QueryBody))
      case 'Cast':
        return yes(namesSecretField((node as Cast).type))
      case 'JsonTable':
        return yes((node as JsonTable).columns.some(namesSecretColumn))
      case 'FunctionSpecification':
        return yes(isSecretNamed(one.name))
      case 'Execute':
        return yes((one.parameters ?? []).length > 0 && this.#parameterSecrets.ofPrepared(nameText(one.name)))
      case 'ExecuteImmediate':
        return yes(this.#parameterSecrets.ofText(textOf(one.statement)).parameters)
      default:
        return 'no'
    }
  }

  /** Values that a change writes to a column. A reference among them may stand for a literal of the change's source. */
  #nearTarget(isSecret: boolean, values: readonly Expression[]): Near {
    if (!isSecret) return 'no'
    this.#anySecret = true
    this.#refersFromSecret ||= values.some((value) => this.#of(value).refers)
    return 'all'
  }

  #take(node: AnyNode, near: Near, parent: AnyNode | undefined): void {
    switch (node.kind) {
      case 'StringLiteral':
      case 'GenericLiteral':
      case 'IntervalLiteral': {
        const { value } = node as AnyNode & { value: string }
        // `password 'x'` is a literal of a type with a secret's name.
        if (node.kind === 'GenericLiteral' && isSecretName((node as GenericLiteral).type))
          return this.#add('literal', node, value)
        const isStatement = parent?.kind === 'ExecuteImmediate' && this.#parameterSecrets.ofText(value).text
        const isProse = parent !== undefined && isCommentOf(parent, node) && holdsSecretWord(value)
        if (near !== 'no' || isStatement || isProse || holdsSecret(value)) this.#add('literal', node, value)
        return
      }
      case 'BinaryLiteral':
        if (near !== 'no') this.#add('literal', node, (node as AnyNode & { hex: string }).hex)
        return
      case 'LongLiteral':
      case 'DecimalLiteral':
      case 'DoubleLiteral': {
        const { value } = node as AnyNode & { value: string }
        const isArgument = parent !== undefined && callers.has(parent.kind) && value.length >= LONG_NUMBER
        if (near === 'all' || (near === 'text' && isArgument)) this.#add('literal', node, value)
        return
      }
      case 'Parameter':
        this.parameters ||= near !== 'no'
        return
      case 'Identifier': {
        const { value, quoted } = node as Identifier
        if (quoted && (holdsSecret(value) || withoutUserInfo(value, []) !== value)) this.#add('name', node, value)
        return
      }
      default:
    }
  }

  #add(kind: SecretNode['kind'], node: AnyNode, value: string): void {
    const { start, end } = node.span
    this.#taken.set(node, { kind, start, end, value })
  }

  /** If a secret is compared with a reference, redacts the literals that the reference may stand for. */
  followReferences(): void {
    this.#collected = true
    if (this.#refersFromSecret) for (const source of this.#sources) this.visit(source, 'all', undefined)
    if (this.#anySecret) for (const routine of this.#routines) this.visit(routine, 'all', undefined)
    const takesSecret = this.#routines.some((routine) => routine.parameters.some(({ name }) => isSecretNamed(name)))
    if (takesSecret && this.#root) this.visit(this.#root, 'all', undefined)
  }
}

const LONG_NUMBER = 4

/** Whether a node is the comment on a table, column or view. */
function isCommentOf(parent: AnyNode, node: AnyNode): boolean {
  return (parent as AnyNode & { readonly comment?: AnyNode }).comment === node
}

function stronger(a: Near, b: Near): Near {
  if (a === 'all' || b === 'all') return 'all'
  return a === 'text' ? a : b
}

/**
 * Whether a mark passes from a child to its parent. AND, OR and queries stop it, since they contain terms of their own;
 * so does the condition of IF or CASE.
 */
function passesUp(node: AnyNode, child: AnyNode): boolean {
  switch (node.kind) {
    case 'LogicalExpression':
    case 'ExistsPredicate':
      return false
    case 'IfExpression':
      return childrenOf(node)[0] !== child
    case 'WhenClause':
      return childrenOf(node)[0] !== child
    case 'FunctionCall':
      // A function's name is checked as a whole.
      return child.kind !== 'QualifiedName'
    default:
      return expressions.has(node.kind) || passing.has(node.kind)
  }
}

const passing: ReadonlySet<string> = new Set([
  'NotExpression',
  'SearchedCaseExpression',
  'SimpleCaseExpression',
  'InListExpression',
  'JsonObjectMember',
  'JsonArrayElement',
  'JsonPathInvocation',
  'JsonPathParameter',
  'CallArgument',
  'TableFunctionArgument',
  'OrderBy',
  'SortItem',
])

function isSource(node: AnyNode, queries: number): boolean {
  return node.kind === 'Values' || node.kind === 'Unnest' || (node.kind === 'SingleColumn' && queries > 1)
}

function isText(node: AnyNode): node is AnyNode & { readonly value: string } {
  return node.kind === 'StringLiteral'
}

function textOf(node: AnyNode | undefined): string {
  return node && isText(node) ? node.value : ''
}
