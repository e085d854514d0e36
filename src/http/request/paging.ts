import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import type { Listed, RowRange } from '../../db/row-range.ts'

const ITEMS_MAX = 100

/**
 * When the last item was created, microseconds since 1970, and its id. Or the id alone, if the item
 * still exists.
 */
const CURSOR = '^(\\d{1,16}_)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'

/** Query of a listing with pages. */
export const PageQuery = Type.Object({
  limit: Type.Optional(
    Type.String({ pattern: '^([1-9]\\d?|100)$', description: `Number of items of a page, at most ${ITEMS_MAX}` }),
  ),
  cursor: Type.Optional(
    Type.String({
      pattern: CURSOR,
      description: 'End of the previous page: the value in its Link header, or the id of its last item',
    }),
  ),
})
export type PageQuery = Static<typeof PageQuery>

/** The address of the next page: the same filters, with a new cursor. */
export function nextPageOf(url: string, cursor: string): string {
  const [path = '', query = ''] = url.split('?', 2)
  const parameters = new URLSearchParams(query)
  parameters.set('cursor', cursor)
  return `${path}?${parameters}`
}

export function readPage({ limit, cursor }: PageQuery): RowRange {
  const [id = '', createdMicros] = cursor?.toLowerCase().split('_').reverse() ?? []
  return {
    limit: limit === undefined ? ITEMS_MAX : Number(limit),
    after: cursor === undefined ? undefined : { id, createdMicros },
  }
}

/**
 * The rows of a page. One row more than the limit must have been read. If it exists, the `Link`
 * header (RFC 8288) gets the address of the next page.
 */
export function sendablePage<Row extends Listed<{ id: string }>>(
  request: FastifyRequest,
  reply: FastifyReply,
  { rows, limit }: { rows: Row[]; limit: number },
): Row[] {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  if (rows.length > limit && last) {
    const [path = ''] = request.url.split('?', 1)
    reply.header('link', `<${path}?limit=${limit}&cursor=${last.createdMicros}_${last.id}>; rel="next"`)
  }
  return page
}
