/**
 * The path that a form or an address names, if it is a page of this host; otherwise `/`. A log-in
 * therefore never leads to another site, nor back to the log-in page.
 */
export function ownPath(next = '/'): string {
  const base = 'http://own'
  const url = next.startsWith('/') && URL.canParse(next, base) ? new URL(next, base) : undefined
  // A path that begins with two slashes would name a host.
  const isOwn = url?.origin === base && !url.pathname.startsWith('//') && !/^\/login(\/|$)/.test(url.pathname)
  return isOwn ? url.pathname + url.search : '/'
}
