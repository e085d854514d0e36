import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Context } from '../context.ts'
import { prefersType } from '../http/request/accept.ts'
import type { App } from '../http/request/typed-app.ts'
import { refuseIllFormedQueries } from '../http/request/well-formed.ts'
import { AuditQuery, auditAnswer, exportAudit, readAuditPage } from '../operator/audit-query.ts'

const AuditAnswer = Type.Object({
  records: Type.Array(
    Type.Object({
      id: Type.String(),
      at: Type.String({ format: 'date-time' }),
      actor: Type.String(),
      action: Type.String(),
      subject: Type.String(),
      before: Type.Unknown(),
      after: Type.Unknown(),
    }),
  ),
})

/** The acts of operators, in pages or as an export. Register it inside a guard. */
export async function operatorAuditRoutes(app: App, { db }: Pick<Context, 'db'>): Promise<void> {
  refuseIllFormedQueries(app)
  const options = {
    schema: {
      summary: 'Changes by operators, newest first; the Link header leads to the next page',
      description: 'With Accept: application/x-ndjson the answer has all matching changes, one line of JSON for each.',
      tags: ['Operator'],
      querystring: AuditQuery,
      response: { 200: AuditAnswer },
    },
  }
  app.get(
    '/v1/operator/audit',
    options,
    async (request: FastifyRequest<{ Querystring: AuditQuery }>, reply: FastifyReply) => {
      reply.header('vary', 'accept')
      if (prefersType(request.headers.accept, 'application/x-ndjson')) return sendAuditExport(reply, db, request.query)
      const { records, next } = await readAuditPage(db, request.query)
      if (next) reply.header('link', `</v1/operator/audit?${next}>; rel="next"`)
      return { records: records.map(auditAnswer) }
    },
  )
}

function sendAuditExport(reply: FastifyReply, db: Context['db'], query: AuditQuery): FastifyReply {
  return reply.type('application/x-ndjson; charset=utf-8').send(Readable.from(exportAudit(db, query)))
}
