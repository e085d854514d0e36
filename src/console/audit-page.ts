import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { escapeHtml } from '../browser/html.js'
import type { Db } from '../db/database.ts'
import type { App } from '../http/request/typed-app.ts'
import { refuseIllFormedQueries } from '../http/request/well-formed.ts'
import { changesText } from '../operator/answers-as-text.ts'
import { type AuditPage, AuditQuery, exportAudit, readAuditPage } from '../operator/audit-query.ts'
import type { Assets } from '../pages/assets.ts'
import { html, trusted } from '../pages/html.ts'
import { sendPage } from '../pages/page-headers.ts'
import { table } from './browser/parts.js'
import { consolePage, consoleStyles } from './console-page.ts'

/** The audit log as a page with filters, and as a file. */
export async function auditPageRoutes(scope: App, { db, assets }: { db: Db; assets: Assets }): Promise<void> {
  refuseIllFormedQueries(scope)
  const schema = { querystring: AuditQuery }
  scope.get('/audit', { schema }, async (request: FastifyRequest<{ Querystring: AuditQuery }>, reply) =>
    sendPage(reply, auditPage(await readAuditPage(db, request.query), request.query, assets)),
  )
  scope.get('/audit.ndjson', { schema }, async (request: FastifyRequest<{ Querystring: AuditQuery }>, reply) =>
    reply
      .header('content-disposition', 'attachment; filename="audit.ndjson"')
      .type('application/x-ndjson; charset=utf-8')
      .send(Readable.from(exportAudit(db, request.query))),
  )
}

const FIELDS = [
  ['from', 'From', 'date'],
  ['to', 'To', 'date'],
  ['actor', 'Who', 'search'],
  ['action', 'What', 'search'],
  ['subject', 'Subject', 'search'],
] as const

function auditPage({ records, next }: AuditPage, query: AuditQuery, assets: Assets): string {
  const filters = new URLSearchParams(
    FIELDS.map(([name]): [string, string] => [name, query[name] ?? '']).filter(([, value]) => value),
  )
  const rows = records.map(({ at, actor, action, subject, before, after }) =>
    [at.toISOString().slice(0, 19).replace('T', ' '), actor, action, subject, changesText(before, after)].map(
      escapeHtml,
    ),
  )
  const main = html`<h1>Audit</h1>
<form class="filters" method="get" action="/audit">
${FIELDS.map(
  ([name, label, type]) =>
    html`<label>${label} <input type="${type}" name="${name}" value="${query[name] ?? ''}" maxlength="100"></label>
`,
)}<button type="submit">Filter</button></form>
<section id="audit" tabindex="-1">
${
  rows.length === 0
    ? html`<p class="calm">${filters.size > 0 ? 'No change matches.' : 'No operator has changed anything yet.'}</p>`
    : trusted(table('Changes by operators', ['When (UTC)', 'Who', 'What', 'Subject', 'Change'], rows))
}
<p>${next ? html`<a href="/audit?${String(next)}" rel="next">Older changes</a> · ` : ''}${query.cursor ? html`<a href="/audit?${String(filters)}">Newest changes</a> · ` : ''}<a href="/audit.ndjson?${String(filters)}" download>Download as NDJSON</a></p>
</section>
`
  return consolePage(assets, {
    title: 'Audit · Agent API Gateway console',
    path: '/audit',
    skipTo: ['audit', 'Skip to the changes'],
    styles: ['browser/base.css', ...consoleStyles('frame', 'overview', 'tables', 'text')],
    main,
  })
}
