import pg from 'pg'
import { type ErrorCode, GatewayError } from '../errors.ts'

/** SQLSTATE of a row that must be unique and is not. */
export const UNIQUE_VIOLATION = '23505'

/** SQLSTATE of a row that refers to a row that does not exist. */
const FOREIGN_KEY_VIOLATION = '23503'

/** The SQLSTATE of an error that the server sent; undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}

/**
 * What callers get for an error of a statement: a refusal if Postgres could not answer, or if the
 * row to which a new row refers was deleted meanwhile. Otherwise the error itself.
 */
export function errorForCaller(cause: unknown): unknown {
  return isUnavailable(cause) ? unavailable(cause) : (deletedMeanwhile(cause) ?? cause)
}

/**
 * Whether Postgres could not answer. True for SQLSTATE classes 08, 53 and 57, 25006 (read-only),
 * deadlocks and serialisation failures, which pass by themselves, and for errors that the server
 * did not send, such as a broken or silent connection. False for our own mistakes.
 */
function isUnavailable(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return /^(08|53|57)/.test(state) || ['25006', '40P01', '40001'].includes(state)
  return error instanceof Error && !(error instanceof TypeError || error instanceof RangeError)
}

/**
 * Foreign keys and the code to answer if the row to which they refer was deleted. The first match
 * counts.
 */
const REFERRED: [foreignKey: RegExp, code: ErrorCode][] = [
  [/^team_members_user_id_fkey$/, 'USER_NOT_FOUND'],
  [/_(user_id|owner_id|account_id|created_by)_fkey$/, 'INVALID_TOKEN'],
  [/_team_id_fkey$/, 'TEAM_NOT_FOUND'],
  [/_connection_id_fkey$/, 'CONNECTION_NOT_FOUND'],
]

/**
 * The refusal if a new row refers to something that was deleted after the request found it, for
 * example the account of the request. Undefined for every other error.
 */
function deletedMeanwhile(cause: unknown): GatewayError | undefined {
  if (sqlState(cause) !== FOREIGN_KEY_VIOLATION) return undefined
  const { constraint = '' } = cause as pg.DatabaseError
  const referred = REFERRED.find(([foreignKey]) => foreignKey.test(constraint))
  return referred && new GatewayError(referred[1], { cause })
}

/** The refusal if Postgres could not answer. */
export function unavailable(cause: unknown): GatewayError {
  return new GatewayError('DEPENDENCY_UNAVAILABLE', { retryAfterMs: 2_000, cause })
}
