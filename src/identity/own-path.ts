/**
 * The page of this host that a form or an address names, and `/` for anything else: a log-in leads
 * to no other site, and not back to itself.
 */
export function ownPath(next = '/'): string {
  const base = 'http://own'
  const url = next.startsWith('/') && URL.canParse(next, base) ? new URL(next, base) : undefined
  // A path that begins with two slashes would name a host.
  const isOwn = url?.origin === base && !url.pathname.startsWith('//') && !/^\/login(\/|$)/.test(url.pathname)
  return isOwn ? url.pathname + url.search : '/'
}
