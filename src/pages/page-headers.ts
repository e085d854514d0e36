import type { FastifyReply } from 'fastify'

/**
 * Everything comes from this origin, nothing is inline, and no frame may hold the page (CSP Level
 * 3).
 */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Answers with a page under a content security policy. Pages are rendered for each request; the
 * files that they load are cached by address.
 */
export function sendPage(reply: FastifyReply, page: string | Buffer, policy: string = PAGE_POLICY): FastifyReply {
  return reply
    .headers({
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': 'camera=(), microphone=(), geolocation=()',
      // A guard may already have set a stricter header.
      'cache-control': reply.getHeader('cache-control') ?? 'private, no-cache',
      vary: 'cookie',
    })
    .type('text/html; charset=utf-8')
    .send(page)
}
