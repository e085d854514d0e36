import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'

const ITEMS_MAX = 100

/** Query of a listing that comes in pages. */
export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.String({ pattern: '^([1-9]\\d?|100)$', description: `Items of a page, at most ${ITEMS_MAX}` }),
  ),
  cursor: Type.Optional(
    Type.String({ format: 'uuid', description: 'Id of the last item of the page before; the Link header has it' }),
  ),
})
export type PageQuery = Static<typeof PageQuery>

/** Which rows of a listing are asked for. */
export interface Page {
  limit: number
  /** Id of the row before the first. */
  after: string | undefined
}

export function readPage({ limit, cursor }: PageQuery): Page {
  return { limit: limit === undefined ? ITEMS_MAX : Number(limit), after: cursor?.toLowerCase() }
}

/**
 * The rows of a page, of which one more than its limit was read; where there are more, the `Link` header (RFC 8288)
 * has the address of the next page.
 */
export function sendablePage<Row extends { id: string }>(
  request: FastifyRequest,
  reply: FastifyReply,
  { rows, limit }: { rows: Row[]; limit: number },
): Row[] {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  if (rows.length > limit && last) {
    const [path = ''] = request.url.split('?', 1)
    reply.header('link', `<${path}?limit=${limit}&cursor=${last.id}>; rel="next"`)
  }
  return page
}
