import type { FastifyReply, FastifyRequest } from 'fastify'
import { prepareError } from '../http/answer/error-answer.ts'
import { prefersType } from '../http/request/accept.ts'
import type { Assets } from '../pages/assets.ts'
import { html } from '../pages/html.ts'
import { sendPage } from '../pages/page-headers.ts'
import { consolePage, consoleStyles } from './console-page.ts'

/**
 * Whether a person will read the failure, because a browser opens a page or sends a form. Failures
 * of the operator API are for programs.
 */
export function isForPerson({ url, headers }: FastifyRequest): boolean {
  return !url.startsWith('/v1/') && prefersType(headers.accept, 'text/html')
}

/** Answers a failure with a page that says what is wrong and where to go. */
export function sendFailure(reply: FastifyReply, thrown: unknown, assets: Assets): FastifyReply {
  const { request } = reply
  const error = prepareError(reply, thrown)
  const { code, status } = error
  const [path = ''] = request.url.split('?', 1)
  const isUnrouted = code === 'METHOD_NOT_ALLOWED' || (code === 'NOT_FOUND' && error.details.message === undefined)
  const title = status === 404 || status === 405 ? 'No such page' : status < 500 ? 'Refused' : 'It failed'
  const main = html`<h1>${title}</h1>
<section id="missing" tabindex="-1">
<p>${isUnrouted ? `The console has no page ${path}.` : error.message}</p>
${status < 500 ? '' : html`<p>Try again in a few seconds. The log line of this failure has code <code>${code}</code> and request <code>${request.id}</code>.</p>`}
<p><a href="/">Overview</a> shows the problems and every API, <a href="/queues">Queues</a> shows the calls that wait.</p>
</section>
`
  const page = consolePage(assets, {
    title: `${title} · Agent API Gateway console`,
    skipTo: ['missing', 'Skip to the text'],
    styles: ['browser/base.css', ...consoleStyles('frame', 'overview', 'tables')],
    main,
  })
  return sendPage(reply, page)
}
