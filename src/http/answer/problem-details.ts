import Type, { type Static } from 'typebox'
import type { GatewayError } from '../../errors.ts'
import { publicError } from './public-error.ts'

export const PROBLEM_TYPE = 'application/problem+json'

/**
 * A failure as problem details (RFC 9457). Members after `instance` are extensions of this gateway.
 */
export const ProblemDetails = Type.Object(
  {
    type: Type.String({ format: 'uri', description: 'The documentation of the code' }),
    title: Type.String({ description: 'What went wrong, in one sentence' }),
    status: Type.Integer({ description: 'HTTP status' }),
    detail: Type.String({ description: 'The next action' }),
    instance: Type.String({ description: 'Id of the request' }),
    code: Type.String({ description: 'Stable name of the failure' }),
    hint: Type.String({ description: 'The next action, with machine tokens such as retry_after=7 or param=id' }),
    docs: Type.String({ description: 'Page of the code' }),
  },
  { $id: 'Problem' },
)

/** Writes a failure as problem details. */
export function problemDetails(error: GatewayError, baseUrl: string, requestId: string): Static<typeof ProblemDetails> {
  const { code, message, hint, docs } = publicError(error, baseUrl)
  return {
    type: docs,
    title: message,
    status: error.status,
    detail: hint,
    instance: `urn:request:${requestId}`,
    code,
    hint,
    docs,
  }
}
