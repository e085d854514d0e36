import { InvalidParameter } from './parameter-values.ts'

/** One HTTP request to the upstream, relative to its base URL. */
export interface UpstreamRequest {
  path: EncodedPath
  /** Default: GET. */
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * Written in this order. Undefined members are left out, and a list becomes one pair for each
   * item, unless it is joined.
   */
  query?: Record<string, string | number | readonly string[] | JoinedList | undefined>
  /** Names in lower case. */
  headers?: Record<string, string>
  /** The text of the body. */
  body?: string
}

/**
 * A list in one parameter of a query. Its items are encoded and the separator is not, so that the
 * separator differs from the same character in an item.
 */
export interface JoinedList {
  items: readonly string[]
  /** As it stands in the query: `,` or `%20`. */
  separator: string
}

/** One answer of the upstream, read and parsed. `body` is undefined if it was empty or not JSON. */
export interface UpstreamResponse {
  status: number
  headers: Record<string, string>
  body: unknown
  /** The beginning of an error's body, if it is not JSON. */
  errorText?: string
}

declare const encoded: unique symbol
/** A request path in which every value is percent-encoded. Only the function `path` makes it. */
export type EncodedPath = string & { readonly [encoded]: true }

/**
 * Builds a request path. Each `${value}` is percent-encoded and stays within its segment.
 *
 * @throws InvalidParameter for `.` and `..`, which are resolved in any encoding (RFC 3986, 5.2.4),
 *   and for an empty value, which would name another resource
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
