/** Whether an address is of a scheme that an application chose (RFC 8252, 7.1), and not of the web. */
export function hasOwnScheme({ protocol }: URL): boolean {
  return protocol !== 'https:' && protocol !== 'http:'
}

/**
 * Where a code goes, for the user who decides. The host of an application's own scheme is free text of that application:
 * `evil://bank.example/` goes to whatever program took the scheme `evil`, so that the scheme is shown with it.
 */
export function redirectWords(address: URL): string {
  const { protocol, host } = address
  if (!hasOwnScheme(address)) return host
  return host === '' ? protocol : `${protocol}//${host}`
}
