import type { FastifyReply, FastifyRequest } from 'fastify'
import type { GatewayError } from '../errors.ts'
import { prepareError } from '../http/answer/error-answer.ts'
import type { Assets } from '../pages/assets.ts'
import { html } from '../pages/html.ts'
import { sendPage } from '../pages/page-headers.ts'
import { consolePage, consoleStyles } from './console-page.ts'

/**
 * Whether a failure is that the console has no such page: failures of the operator API are for
 * programs.
 */
export function isMissingPage({ url }: FastifyRequest, { code }: GatewayError): boolean {
  return (code === 'NOT_FOUND' || code === 'METHOD_NOT_ALLOWED') && !url.startsWith('/v1/')
}

/** Answers a person who opened an address at which the console has no page. */
export function sendNotFound(reply: FastifyReply, thrown: GatewayError, assets: Assets): FastifyReply {
  const error = prepareError(reply, thrown)
  const [path = ''] = reply.request.url.split('?', 1)
  const said = error.code === 'NOT_FOUND' ? error.details.message : undefined
  const main = html`<h1>No such page</h1>
<section id="missing" tabindex="-1">
<p>${said ?? `The console has no page ${path}.`}</p>
<p><a href="/">Overview</a> has what needs you and every API, <a href="/queues">Queues</a> the calls that wait.</p>
</section>
`
  const page = consolePage(assets, {
    title: 'No such page · Agent API Gateway console',
    skipTo: ['missing', 'Skip to the text'],
    styles: ['browser/base.css', ...consoleStyles('frame', 'overview', 'tables')],
    main,
  })
  return sendPage(reply, page)
}
