import Fastify from 'fastify'
import { type Cacheable, createCacheable } from '../http/cacheable.ts'
import { html } from '../http/html.ts'
import type { Assets } from '../portal/assets.ts'

/** The reference builds its styles while it runs; scripts and requests still come from here alone. */
export const REFERENCE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

export const REFERENCE_SCRIPT = '/docs/reference.js'

/** The interactive reference over `/openapi.json`. */
export function referencePage(assets: Assets): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reference · Agent API Gateway</title>
<link rel="icon" type="image/svg+xml" href="${assets.href('icon.svg')}">
</head>
<body>
<div id="reference"></div>
<noscript><p>The reference needs JavaScript. The same is in <a href="/openapi.json">openapi.json</a> and <a href="/llms.txt">llms.txt</a>.</p></noscript>
<script src="${REFERENCE_SCRIPT}"></script>
<script type="module" src="${assets.href('reference.js')}"></script>
</body>
</html>
`.text
}

/**
 * The script of the reference. Its package serves it inside the code of a Fastify plugin, so a server that never
 * listens is asked for it, once, when it is first needed: it is 4 MB.
 */
export async function loadReferenceScript(): Promise<Cacheable> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const holder = Fastify()
  await holder.register(reference, { routePrefix: '/r', configuration: { content: { openapi: '3.1.0' } } })
  const answer = await holder.inject('/r/js/scalar.js')
  await holder.close()
  if (answer.statusCode !== 200) throw new Error('the reference has no script')
  return createCacheable(answer.rawPayload, 'text/javascript; charset=utf-8')
}
