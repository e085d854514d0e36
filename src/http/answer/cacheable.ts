import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'

/**
 * A body that is the same for all readers for some time. It is compressed once and identified by
 * its hash.
 */
export interface Cacheable {
  body: Buffer
  /** Media type with charset. */
  type: string
  /** Hash of the bytes; part of the ETag. */
  hash: string
  encoded: Map<Encoding, Promise<Buffer>>
}

type Encoding = 'br' | 'gzip'

const ENCODERS: Record<Encoding, (body: Buffer) => Promise<Buffer>> = {
  br: (body) => promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: (body) => promisify(gzip)(body),
}

/** Bodies below this size are not compressed, because it saves nothing. */
const COMPRESS_BYTES_MIN = 1_024

export function createCacheable(content: string | Buffer, type: string): Cacheable {
  const body = Buffer.from(content)
  return { body, type, hash: createHash('sha256').update(body).digest('base64url').slice(0, 16), encoded: new Map() }
}

/**
 * Sends the body, or 304 if the client already has it (RFC 9110, 13.1.2). `cacheControl` says how
 * long it may be stored.
 */
export async function sendCacheable(reply: FastifyReply, file: Cacheable, cacheControl: string): Promise<FastifyReply> {
  const { headers } = reply.request
  const isCompressible = file.body.length >= COMPRESS_BYTES_MIN && /^(text|application|image\/svg)/.test(file.type)
  const encoding = isCompressible ? acceptedEncoding(headers['accept-encoding']) : undefined
  const etag = `"${file.hash}${encoding ? `-${encoding}` : ''}"`
  reply.header('cache-control', cacheControl).header('etag', etag).header('x-content-type-options', 'nosniff')
  if (isCompressible)
    reply.header('vary', [reply.getHeader('vary'), 'accept-encoding'].flat().filter(Boolean).join(', '))
  if (hasTag(headers['if-none-match'], etag)) return reply.status(304).send()
  if (encoding) reply.header('content-encoding', encoding)
  return reply.type(file.type).send(encoding ? await encode(file, encoding) : file.body)
}

/** Items of a header that are read. A header has room for thousands, which would take 8 ms. */
const ITEMS_MAX = 50

function acceptedEncoding(header = ''): Encoding | undefined {
  const accepted = header.split(',', ITEMS_MAX).filter((item) => !/;\s*q=0(\.0*)?\s*$/.test(item))
  const names = accepted.map((item) => item.split(';', 1)[0]?.trim().toLowerCase())
  return names.includes('br') ? 'br' : names.includes('gzip') ? 'gzip' : undefined
}

function hasTag(header: string | undefined, etag: string): boolean {
  return (header ?? '').split(',', ITEMS_MAX).some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')))
}

function encode(file: Cacheable, encoding: Encoding): Promise<Buffer> {
  const known = file.encoded.get(encoding)
  if (known) return known
  const encoded = ENCODERS[encoding](file.body)
  file.encoded.set(encoding, encoded)
  return encoded
}
