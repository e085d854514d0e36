import type { Terms } from '../../catalog/terms.ts'

/**
 * `Link` of an answer with data (RFC 8288): terms of the source and licence of its data, so that
 * what is owed for the data comes with them. Undefined if the source names neither.
 */
export function termsLink({ url, licence }: Terms): string | undefined {
  const links = [
    ...(url === undefined ? [] : [`<${url}>; rel="terms-of-service"`]),
    ...(licence === undefined ? [] : [`<${licence}>; rel="license"`]),
  ]
  return links.length === 0 ? undefined : links.join(', ')
}
