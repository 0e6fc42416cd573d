import fc, { type Arbitrary } from 'fast-check'
import type { Expression, StringLiteral } from '../../../src/sql/syntax/ast.ts'
import type { Identifier, QualifiedName } from '../../../src/sql/syntax/ast-node.ts'
import type { DataType } from '../../../src/sql/syntax/ast-types.ts'
import type { Query, QueryBody, Relation } from '../../../src/sql/syntax/ast-query.ts'
import type { RowPattern } from '../../../src/sql/syntax/ast-patterns.ts'
import type { Statement } from '../../../src/sql/syntax/ast-statements.ts'

const span = { start: 0, end: 0, at: 0 }

/** A node of this kind, with an arbitrary for each field. */
function node<K extends string, F extends object>(kind: K, fields: { [N in keyof F]: Arbitrary<F[N]> }) {
  return fc.record(fields).map((values) => ({ kind, span, ...(values as F) }))
}

const optional = <T>(arbitrary: Arbitrary<T>): Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 })
const some = <T>(arbitrary: Arbitrary<T>, minLength = 1, maxLength = 3): Arbitrary<T[]> =>
  fc.array(arbitrary, { minLength, maxLength })
const nothing = fc.constant(undefined)
const no = fc.constant(false)

const plainName = fc.constantFrom(
  'a',
  'b',
  'c1',
  '_x',
  'Name',
  'count',
  'sum',
  'total_price',
  'limit',
  'date',
  'key',
  'value',
  'first',
  'row',
  'show',
  'format',
  'at',
  'over',
  'filter',
)
const identifier: Arbitrary<Identifier> = fc.oneof(
  { weight: 5, arbitrary: node('Identifier', { value: plainName, quoted: no }) },
  {
    weight: 1,
    arbitrary: node('Identifier', {
      value: fc.string({ minLength: 1, maxLength: 6, unit: 'grapheme' }),
      quoted: fc.constant(true),
    }),
  },
)
/** Names for positions where the parser reads a word of the grammar as such, and never as a name. */
const safeName: Arbitrary<Identifier> = node('Identifier', {
  value: fc.constantFrom('a', 'b', 'c1', 'x_y'),
  quoted: no,
})
const qualifiedName: Arbitrary<QualifiedName> = node('QualifiedName', { parts: some(identifier) })
const functionName: Arbitrary<QualifiedName> = node('QualifiedName', {
  parts: fc
    .constantFrom('sum', 'lower', 'my_function', 'count')
    .map((value) => [{ kind: 'Identifier' as const, span, value, quoted: false }]),
})
const string: Arbitrary<StringLiteral> = node('StringLiteral', { value: fc.string({ maxLength: 8, unit: 'grapheme' }) })

const type: Arbitrary<DataType> = fc.letrec<{ type: DataType }>((tie) => ({
  type: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    node('GenericDataType', { name: safeName, arguments: fc.constant([]) }),
    node('GenericDataType', {
      name: safeName,
      arguments: some(
        fc.oneof(
          node('NumericParameter', { value: fc.nat(40).map(String) }),
          node('TypeParameter', { type: tie('type') }),
        ),
        1,
        2,
      ),
    }),
    node('RowDataType', { fields: some(node('RowDataTypeField', { name: optional(safeName), type: tie('type') })) }),
    node('IntervalDataType', { from: fc.constant('DAY' as const), to: fc.constant('SECOND' as const) }),
    node('DateTimeDataType', {
      type: fc.constantFrom('TIME' as const, 'TIMESTAMP' as const),
      withTimeZone: fc.boolean(),
      precision: optional(node('NumericParameter', { value: fc.nat(12).map(String) })),
    }),
  ),
})).type

const literal: Arbitrary<Expression> = fc.oneof(
  node('NullLiteral', {}),
  node('BooleanLiteral', { value: fc.boolean() }),
  fc
    .bigInt(-(2n ** 63n), 2n ** 63n - 1n)
    .map((value) => ({ kind: 'LongLiteral' as const, span, value: String(value), text: String(value) })),
  node('DecimalLiteral', { value: fc.constantFrom('1.5', '-.5', '00.10', '123456789012345678901234567890.5') }),
  node('DoubleLiteral', { value: fc.constantFrom('1e5', '-1.5E-3', '.1e+10') }),
  string,
  node('BinaryLiteral', { hex: fc.constantFrom('', '00', 'DEADBEEF') }),
  node('GenericLiteral', {
    type: fc.constantFrom('DATE', 'timestamp', 'json', 'weird type', 'select'),
    value: fc.string({ maxLength: 5 }),
  }),
  node('IntervalLiteral', {
    value: fc.constantFrom('1', '2 03:04'),
    sign: fc.constantFrom('POSITIVE' as const, 'NEGATIVE' as const),
    startField: fc.constantFrom('DAY' as const, 'YEAR' as const),
    endField: optional(fc.constantFrom('SECOND' as const, 'MONTH' as const)),
  }),
)

interface Parts {
  expression: Expression
  lambda: Expression
  query: Query
  body: QueryBody
  specification: QueryBody
  relation: Relation
  pattern: RowPattern
}

const comparison = fc.constantFrom(
  '=' as const,
  '<>' as const,
  '<' as const,
  '<=' as const,
  '>' as const,
  '>=' as const,
)

const parts = fc.letrec((tie: fc.LetrecTypedTie<Parts>) => {
  const expression = tie('expression')
  const query = tie('query')
  const subquery = node('SubqueryExpression', { query })
  const sortItem = node('SortItem', {
    sortKey: expression,
    ordering: fc.constantFrom('ASCENDING' as const, 'DESCENDING' as const),
    nullOrdering: fc.constantFrom('FIRST' as const, 'LAST' as const, 'UNDEFINED' as const),
  })
  const orderBy = node('OrderBy', { sortItems: some(sortItem) })
  const bound = fc.oneof(
    node('FrameBound', { type: fc.constant('CURRENT_ROW' as const), value: nothing }),
    node('FrameBound', { type: fc.constantFrom('PRECEDING' as const, 'FOLLOWING' as const), value: expression }),
    node('FrameBound', {
      type: fc.constantFrom('UNBOUNDED_PRECEDING' as const, 'UNBOUNDED_FOLLOWING' as const),
      value: nothing,
    }),
  )
  const none = fc.constant([])
  const frame = node('WindowFrame', {
    type: fc.constantFrom('ROWS' as const, 'RANGE' as const, 'GROUPS' as const),
    start: bound,
    end: optional(bound),
    measures: none,
    afterMatchSkipTo: nothing,
    patternSearchMode: nothing,
    pattern: nothing,
    subsets: none,
    variableDefinitions: none,
  })
  const windowSpecification = node('WindowSpecification', {
    existingWindowName: optional(safeName),
    partitionBy: some(expression, 0, 2),
    orderBy: optional(orderBy),
    frame: optional(frame),
  })
  const window = fc.oneof(node('WindowReference', { name: safeName }), windowSpecification)
  const call = (star: boolean) =>
    node('FunctionCall', {
      name: functionName,
      arguments: star
        ? none
        : some(fc.oneof({ weight: 4, arbitrary: expression }, { weight: 1, arbitrary: tie('lambda') }), 1, 3),
      star: fc.constant(star),
      distinct: star ? no : fc.boolean(),
      orderBy: star ? nothing : optional(orderBy),
      filter: optional(expression),
      window: optional(window),
      nullTreatment: nothing,
      processingMode: nothing,
    })
  const when = node('WhenClause', { operand: expression, result: expression })
  const path = node('JsonPathInvocation', {
    inputExpression: expression,
    inputFormat: optional(fc.constantFrom('JSON' as const, 'UTF8' as const)),
    jsonPath: string,
    pathName: optional(safeName),
    pathParameters: some(
      node('JsonPathParameter', {
        name: safeName,
        parameter: expression,
        format: optional(fc.constant('JSON' as const)),
      }),
      0,
      2,
    ),
  })
  const jsonBehavior = fc.oneof(
    fc.record({ behavior: fc.constantFrom('ERROR' as const, 'NULL' as const) }),
    fc.record({ behavior: fc.constant('DEFAULT' as const), value: expression }),
  )
  const relation = tie('relation')
  const tableSubquery = node('TableSubquery', { query })
  const names = optional(some(identifier))
  const join = fc.oneof(
    node('Join', { type: fc.constant('CROSS' as const), left: relation, right: relation, criteria: nothing }),
    node('Join', {
      type: fc.constantFrom('INNER' as const, 'LEFT' as const, 'RIGHT' as const, 'FULL' as const),
      left: relation,
      right: relation,
      criteria: fc.oneof(
        node('JoinOn', { expression }),
        node('JoinUsing', { columns: some(identifier) }),
        node('NaturalJoin', {}),
      ),
    }),
  )
  // An operand in parentheses has no WITH.
  const operandQuery = (query as Arbitrary<Query>).map((value): Query => ({ ...value, with: undefined }))
  const setOperand = fc.oneof(
    { weight: 3, arbitrary: tie('specification') },
    { weight: 1, arbitrary: node('TableSubquery', { query: operandQuery }) },
  )
  return {
    lambda: node('LambdaExpression', { parameters: some(identifier, 0, 2), body: expression }),
    expression: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'sql', withCrossShrink: true },
      fc.oneof(
        literal,
        identifier,
        node('CurrentTimestamp', { precision: optional(fc.nat(12)) }),
        node('CurrentUser', {}),
      ),
      node('LogicalExpression', {
        operator: fc.constantFrom('AND' as const, 'OR' as const),
        terms: some(expression, 2, 3),
      }),
      node('NotExpression', { value: expression }),
      node('ComparisonExpression', {
        operator: fc.oneof(comparison, fc.constant('IS DISTINCT FROM' as const)),
        left: expression,
        right: expression,
      }),
      node('QuantifiedComparisonExpression', {
        operator: comparison,
        quantifier: fc.constantFrom('ALL' as const, 'ANY' as const, 'SOME' as const),
        value: expression,
        subquery,
      }),
      node('BetweenPredicate', { value: expression, min: expression, max: expression }),
      node('InPredicate', {
        value: expression,
        valueList: fc.oneof(node('InListExpression', { values: some(expression) }), subquery),
      }),
      node('LikePredicate', { value: expression, pattern: expression, escape: optional(expression) }),
      fc.oneof(node('IsNullPredicate', { value: expression }), node('IsNotNullPredicate', { value: expression })),
      fc.oneof(subquery, node('ExistsPredicate', { subquery })),
      node('ArithmeticUnaryExpression', { sign: fc.constantFrom('+' as const, '-' as const), value: expression }),
      node('ArithmeticBinaryExpression', {
        operator: fc.constantFrom('+' as const, '-' as const, '*' as const, '/' as const, '%' as const),
        left: expression,
        right: expression,
      }),
      node('ConcatExpression', { left: expression, right: expression }),
      node('AtTimeZone', { value: expression, timeZone: string }),
      fc.oneof(call(false), call(false), call(true)),
      node('Listagg', {
        distinct: fc.boolean(),
        value: expression,
        separator: optional(string),
        overflow: optional(
          fc.oneof(
            fc.constant({ behavior: 'ERROR' as const }),
            fc.record({
              behavior: fc.constant('TRUNCATE' as const),
              filler: optional(string),
              withCount: fc.boolean(),
            }),
          ),
        ),
        orderBy,
        filter: optional(expression),
        window: optional(window),
      }),
      node('WindowOperation', { name: safeName, window }),
      tie('lambda'),
      fc.oneof(
        node('IfExpression', { condition: expression, trueValue: expression, falseValue: optional(expression) }),
        node('NullIfExpression', { first: expression, second: expression }),
        node('CoalesceExpression', { operands: some(expression, 2, 3) }),
        node('TryExpression', { value: expression }),
        node('Format', { arguments: some(expression, 2, 3) }),
      ),
      node('SimpleCaseExpression', {
        operand: expression,
        whenClauses: some(when),
        defaultValue: optional(expression),
      }),
      node('SearchedCaseExpression', { whenClauses: some(when), defaultValue: optional(expression) }),
      node('Cast', { expression, type, safe: fc.boolean() }),
      node('ArrayConstructor', { values: some(expression, 0) }),
      node('Row', { items: some(expression) }),
      node('SubscriptExpression', { base: expression, index: expression }),
      node('DereferenceExpression', { base: expression, field: identifier }),
      node('Trim', {
        specification: fc.constantFrom('LEADING' as const, 'TRAILING' as const, 'BOTH' as const),
        source: expression,
        character: optional(expression),
      }),
      node('Extract', { field: fc.constantFrom('YEAR' as const, 'DOW' as const), expression }),
      node('Normalize', { value: expression, form: fc.constantFrom('NFC' as const, 'NFKD' as const) }),
      node('GroupingOperation', { columns: some(qualifiedName) }),
      node('JsonExists', {
        pathInvocation: path,
        errorBehavior: optional(fc.constantFrom('TRUE' as const, 'ERROR' as const)),
      }),
      node('JsonValue', {
        pathInvocation: path,
        returnedType: optional(type),
        emptyBehavior: optional(jsonBehavior),
        errorBehavior: optional(jsonBehavior),
      }),
      node('JsonObject', {
        members: some(
          node('JsonObjectMember', {
            key: expression,
            value: expression,
            format: optional(fc.constant('JSON' as const)),
          }),
        ),
        absentOnNull: fc.boolean(),
        uniqueKeys: fc.boolean(),
        returnedType: nothing,
        outputFormat: nothing,
      }),
      node('JsonArray', {
        elements: some(
          node('JsonArrayElement', { value: expression, format: optional(fc.constant('UTF16' as const)) }),
        ),
        absentOnNull: fc.boolean(),
        returnedType: optional(type),
        outputFormat: nothing,
      }),
    ),
    query: node('Query', {
      functions: none,
      sessionProperties: none,
      with: optional(
        node('With', {
          recursive: fc.boolean(),
          queries: some(node('WithQuery', { name: safeName, query, columnNames: names }), 1, 2),
        }),
      ),
      body: tie('body'),
      orderBy: optional(orderBy),
      offset: optional(
        node('Offset', {
          rowCount: fc
            .nat()
            .map((value) => ({ kind: 'LongLiteral' as const, span, value: String(value), text: String(value) })),
        }),
      ),
      limit: optional(
        fc.oneof(
          node('Limit', { rowCount: fc.constant('ALL' as const) }),
          node('FetchFirst', { rowCount: nothing, withTies: fc.boolean() }),
        ),
      ),
    }),
    body: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'sql', withCrossShrink: true },
      tie('specification'),
      node('SetOperation', {
        operator: fc.constantFrom('UNION' as const, 'INTERSECT' as const, 'EXCEPT' as const),
        distinct: fc.boolean(),
        corresponding: optional(node('Corresponding', { columns: some(safeName, 0, 2) })),
        left: setOperand,
        right: setOperand,
      }),
      node('Values', { rows: some(expression) }),
      node('Table', { name: qualifiedName, queryPeriod: nothing }),
    ),
    specification: node('QuerySpecification', {
      select: node('Select', {
        distinct: fc.boolean(),
        items: some(
          fc.oneof(
            { weight: 4, arbitrary: node('SingleColumn', { expression, alias: optional(identifier) }) },
            { weight: 1, arbitrary: node('AllColumns', { target: nothing, aliases: none }) },
            { weight: 1, arbitrary: node('AllColumns', { target: safeName, aliases: some(identifier, 0, 2) }) },
          ),
        ),
      }),
      from: optional(relation),
      where: optional(expression),
      groupBy: optional(
        node('GroupBy', {
          distinct: fc.boolean(),
          elements: some(
            fc.oneof(
              node('SimpleGroupBy', { columns: some(expression, 0) }),
              node('GroupingSets', {
                type: fc.constantFrom('EXPLICIT' as const, 'ROLLUP' as const, 'CUBE' as const),
                sets: some(some(expression, 0)),
              }),
            ),
          ),
        }),
      ),
      having: optional(expression),
      windows: some(node('WindowDefinition', { name: safeName, window: windowSpecification }), 0, 2),
    }),
    relation: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'sql', withCrossShrink: true },
      node('Table', { name: qualifiedName, queryPeriod: nothing }),
      tableSubquery,
      node('AliasedRelation', { relation, alias: identifier, columnNames: names }),
      join,
      node('Unnest', { expressions: some(expression), withOrdinality: fc.boolean() }),
      node('Lateral', { query }),
      node('SampledRelation', {
        relation,
        type: fc.constantFrom('BERNOULLI' as const, 'SYSTEM' as const),
        samplePercentage: expression,
      }),
      node('PatternRecognitionRelation', {
        input: relation,
        partitionBy: some(expression, 0, 2),
        orderBy: optional(orderBy),
        measures: some(node('MeasureDefinition', { expression, name: identifier }), 0, 2),
        rowsPerMatch: optional(
          fc.constantFrom('ONE' as const, 'ALL_OMIT_EMPTY' as const, 'ALL_WITH_UNMATCHED' as const),
        ),
        afterMatchSkipTo: optional(
          node('SkipTo', { position: fc.constantFrom('PAST_LAST' as const, 'NEXT' as const), identifier: nothing }),
        ),
        patternSearchMode: optional(fc.constantFrom('INITIAL' as const, 'SEEK' as const)),
        pattern: tie('pattern'),
        subsets: some(node('SubsetDefinition', { name: safeName, identifiers: some(safeName) }), 0, 1),
        variableDefinitions: some(node('VariableDefinition', { name: safeName, expression })),
      }),
    ),
    pattern: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      node('PatternVariable', { name: safeName }),
      node('EmptyPattern', {}),
      node('AnchorPattern', { type: fc.constantFrom('PARTITION_START' as const, 'PARTITION_END' as const) }),
      node('ExcludedPattern', { pattern: tie('pattern') }),
      node('PatternConcatenation', { patterns: some(tie('pattern'), 2, 3) }),
      node('PatternAlternation', { patterns: some(tie('pattern'), 2, 3) }),
      node('PatternPermutation', { patterns: some(tie('pattern'), 1, 3) }),
      node('QuantifiedPattern', {
        pattern: tie('pattern'),
        quantifier: node('PatternQuantifier', {
          symbol: fc.constant('{}' as const),
          atLeast: optional(fc.constant('1')),
          atMost: fc.constant('5'),
          greedy: fc.boolean(),
        }),
      }),
    ),
  }
}) as unknown as { [N in keyof Parts]: Arbitrary<Parts[N]> }

export const arbitraryExpression: Arbitrary<Expression> = parts.expression
export const arbitraryQuery: Arbitrary<Query> = parts.query
export const arbitraryType: Arbitrary<DataType> = type

const { expression, query, relation } = parts
const property = node('Property', { name: identifier, value: optional(expression) })
const assignment = node('UpdateAssignment', { name: identifier, value: expression })
const column = node('ColumnDefinition', {
  name: node('QualifiedName', { parts: some(safeName, 1, 1) }),
  type,
  nullable: fc.boolean(),
  comment: optional(string),
  properties: some(property, 0, 2),
})

export const arbitraryStatement: Arbitrary<Statement> = fc.oneof(
  { weight: 6, arbitrary: query as Arbitrary<Statement> },
  { weight: 1, arbitrary: node('Insert', { target: qualifiedName, columns: optional(some(identifier)), query }) },
  { weight: 1, arbitrary: node('Delete', { table: qualifiedName, where: optional(expression) }) },
  {
    weight: 1,
    arbitrary: node('Update', { table: qualifiedName, assignments: some(assignment), where: optional(expression) }),
  },
  {
    weight: 1,
    arbitrary: node('Merge', {
      target: qualifiedName,
      targetAlias: optional(identifier),
      source: relation,
      predicate: expression,
      cases: some(
        fc.oneof(
          node('MergeUpdate', { condition: optional(expression), assignments: some(assignment) }),
          node('MergeDelete', { condition: optional(expression) }),
          node('MergeInsert', {
            condition: optional(expression),
            columns: some(identifier, 0),
            values: some(expression),
          }),
        ),
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: node('CreateTableAsSelect', {
      name: qualifiedName,
      query,
      saveMode: fc.constantFrom('FAIL' as const, 'IGNORE' as const, 'REPLACE' as const),
      properties: some(property, 0, 2),
      withData: fc.boolean(),
      columnAliases: optional(some(identifier)),
      comment: optional(string),
    }),
  },
  {
    weight: 1,
    arbitrary: node('CreateTable', {
      name: qualifiedName,
      elements: some(column),
      saveMode: fc.constantFrom('FAIL' as const, 'IGNORE' as const),
      comment: optional(string),
      properties: some(property, 0, 2),
    }),
  },
  { weight: 1, arbitrary: node('SetSession', { name: qualifiedName, value: expression }) },
  { weight: 1, arbitrary: node('Prepare', { name: identifier, statement: query }) },
  {
    weight: 1,
    arbitrary: node('Explain', {
      statement: query,
      options: some(node('ExplainType', { type: fc.constantFrom('IO' as const, 'LOGICAL' as const) }), 0, 1),
    }),
  },
  { weight: 1, arbitrary: node('Execute', { name: identifier, parameters: some(expression, 0) }) },
) as Arbitrary<Statement>
