/** Why a recorded statement is not run again. */
export const skipReasons = {
  write: 'the statement changes data or settings',
  notAQuery: 'the statement is not a query: it shows or sets something about the server',
  notAnalysed: 'the statement was never analysed, so its effect is unknown',
  secrets: 'secrets were removed from the text of the statement',
  forgotten: 'the data of the query was removed from the log',
  noPlan: 'the record has no plan, or the other server gave none',
  effects: 'the statement calls a table function or procedure, which may change data',
  transaction: 'the statement is part of a transaction',
  hidden: 'the server does not show the statement to this user',
} as const
