/** Stands for a part of a path that cannot be decoded. NUL is in no name and in no id. */
const NO_NAME = '%00'

/**
 * The address as the router can decode it. The router would refuse any other address before any
 * hook runs, so that neither limits nor credentials would be checked. A part of the path that is
 * not percent-encoded UTF-8 names nothing.
 */
export function decodable(address: string): string {
  const [path = '', ...query] = address.split(/(?=[?#])/)
  if (!path.includes('%') || isDecodable(path)) return address
  const parts = path.split('/').map((part) => (isDecodable(part) ? part : NO_NAME))
  return [parts.join('/'), ...query].join('')
}

/** Whether a text is percent-encoded UTF-8. */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    // Nothing else makes it throw.
    return false
  }
}
