import { InvalidParameter } from './parameter-values.ts'

/** One HTTP request to the upstream, relative to its base URL. */
export interface UpstreamRequest {
  path: EncodedPath
  /** Default: GET. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * In this order; undefined members are left out, and the name of a list is repeated for each
   * item.
   */
  query?: Record<string, string | number | readonly string[] | undefined>
  /** Lower-case names. */
  headers?: Record<string, string>
  /** The text of the body. */
  body?: string
}

/**
 * One answer of the upstream, read and parsed; `body` is undefined when it was empty or not JSON.
 */
export interface UpstreamResponse {
  status: number
  headers: Record<string, string>
  body: unknown
  /** The beginning of an error's body that is not JSON. */
  errorText?: string
}

declare const encoded: unique symbol
/** A request path in which every value is one percent-encoded segment: only `path` makes it. */
export type EncodedPath = string & { readonly [encoded]: true }

/**
 * Builds a request path; each `${value}` becomes one percent-encoded segment part.
 *
 * @throws InvalidParameter for `.` and `..`, which no encoding keeps from being resolved (RFC 3986,
 *   5.2.4), and for an empty value, which would name another resource
 */
export function path(fixed: TemplateStringsArray, ...values: (string | number)[]): EncodedPath {
  let result = fixed[0] ?? ''
  values.forEach((value, index) => {
    const text = String(value)
    if (text === '' || text === '.' || text === '..' || !text.isWellFormed()) {
      throw new InvalidParameter(undefined, 'it cannot be a path segment')
    }
    result += encodeURIComponent(text) + fixed[index + 1]
  })
  return result as EncodedPath
}
