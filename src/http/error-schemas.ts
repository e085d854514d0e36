import type { TSchema } from 'typebox'
import { ErrorAnswer } from './error-answer.ts'

type ErrorStatus = 400 | 401 | 402 | 403 | 404 | 409 | 413 | 415 | 429

/**
 * The error answers of a route outside the proxy, by status, for its `response` schemas. 500 and 503 are always among
 * them: every route may fail, and each may lose Postgres or Redis.
 */
export function errorAnswers(...statuses: ErrorStatus[]): Record<number, TSchema> {
  return Object.fromEntries([...statuses, 500, 503].map((status) => [status, ErrorAnswer]))
}
