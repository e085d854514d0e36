import { Agent, request } from 'undici'

/** A connection for each running call, as if each came from another caller. */
const dispatcher = new Agent({ connections: 12_000, pipelining: 1 })

/**
 * Sends one call.
 *
 * @returns its outcome: status and code such as `200` or `503 OVERLOADED`, or the error of the
 *   connection
 */
export async function ask(url: string, headers: Record<string, string>): Promise<string> {
  try {
    const { statusCode, body } = await request(url, { dispatcher, headers })
    const text = await body.text()
    return statusCode < 300 ? String(statusCode) : `${statusCode} ${/"code":"(\w+)"/.exec(text)?.[1]}`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
