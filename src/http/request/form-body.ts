import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../../errors.ts'
import { isWellFormed } from './well-formed.ts'

/**
 * Lets the routes of a scope accept the body of an HTML form that is sent without a script. It
 * refuses what JSON bodies may not hold: ill-formed text, because nobody could log in with a
 * password that has a NUL, and a field that appears twice.
 */
export function takeForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'buffer' },
    async (_: unknown, body: Buffer) => {
      // Bytes that are not UTF-8 would silently become other characters.
      if (!isUtf8(percentDecoded(body))) throw new GatewayError('INVALID_ENCODING')
      const fields = [...new URLSearchParams(body.toString())]
      const form = Object.fromEntries(fields)
      if (!Object.values(form).every(isWellFormed)) throw new GatewayError('INVALID_ENCODING')
      if (Object.keys(form).length < fields.length)
        throw new GatewayError('VALIDATION_ERROR', { message: 'A field appears twice in the form.' })
      return form
    },
  )
}

/** The bytes that a form means. A percent sign that begins no escape stands for itself. */
function percentDecoded(body: Buffer): Buffer {
  const decoded = body
    .toString('latin1')
    .replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  return Buffer.from(decoded, 'latin1')
}
