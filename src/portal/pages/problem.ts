import type { Api } from '../../catalog/catalog.ts'
import type { GatewayError } from '../../errors.ts'
import { span } from '../../fleet/words.js'
import { type Html, html } from '../../pages/html.ts'

/** The failed address, and similar addresses. */
export interface Wanted {
  method: string
  path: string
  /** Words of the address, for the search field. */
  sought: string
  nearest: Api[]
  /**
   * Whether the address belongs to the documentation. Then a search for APIs would find nothing.
   */
  isOfDocs: boolean
}

/** Where a person can request another mail, by the page to which the link in the mail led. */
const OTHER_LINKS: Record<string, Html> = {
  '/reset': html`<a href="/forgot">Have another link mailed</a>`,
  '/verify': html`<a href="/account/settings">Log in, and have the mail sent again</a>`,
}

/** The page for a wrong address or a failure, with links to go on. */
export function problemPage(error: GatewayError, wanted: Wanted): Html {
  const otherLink = error.status < 402 ? OTHER_LINKS[wanted.path] : undefined
  if (otherLink) {
    const isCutOff = error.code === 'VALIDATION_ERROR'
    const text = isCutOff ? 'The address is cut off: copy all of it from the mail.' : error.message
    return html`<div class="wrap narrow problem">
<h1>This link does not work</h1>
<p class="lead">${text}</p>
<p>${otherLink}</p>
</div>`
  }
  const { title, text } = wordsOf(error, wanted)
  return html`<div class="wrap narrow problem">
<h1>${title}</h1>
<p class="lead">${text}</p>
${
  wanted.nearest.length === 0
    ? ''
    : html`<p>Did you mean ${wanted.nearest.map(
        ({ slug, upstream }, index) =>
          html`${index === 0 ? '' : index === wanted.nearest.length - 1 ? ' or ' : ', '}<a href="/apis/${slug}">${upstream.displayName}</a>`,
      )}?</p>`
}
<form role="search" method="get" action="${wanted.isOfDocs ? '/docs/search#found' : '/#catalog'}">
<div class="field"><label for="q">Search the ${wanted.isOfDocs ? 'documentation' : 'APIs'}</label><input id="q" name="q" type="search" maxlength="200" value="${wanted.sought.slice(0, 200)}"></div>
<button class="button" type="submit">Search</button>
</form>
<p class="small"><a href="/">All APIs</a> · <a href="/docs">Docs</a> · <a href="/docs/errors#${error.code}">${error.code}</a></p>
</div>`
}

function wordsOf(error: GatewayError, { method, path }: Wanted): { title: string; text: string } {
  if (error.code === 'API_NOT_FOUND') return { title: 'No such API', text: 'The catalog has no API with this name.' }
  if (error.status === 404) return { title: 'No such page', text: `The gateway has no page at ${path.slice(0, 100)}.` }
  if (method === 'POST' && /^\/(signup|login)$/.test(path)) {
    return {
      title: 'This form needs JavaScript',
      text: `Turn it on, or send POST /v1/auth${path} with email and password as JSON.`,
    }
  }
  if (error.status >= 500) return { title: 'That did not work', text: `${error.message} Try again in a moment.` }
  if (error.status === 429) {
    const { retryAfterMs } = error.details
    const wait = retryAfterMs === undefined ? '' : ` Try again in ${span(Math.max(retryAfterMs, 1_000))}.`
    return { title: 'Too many requests', text: `${error.message}${wait}` }
  }
  return { title: 'That is not possible here', text: error.message }
}
