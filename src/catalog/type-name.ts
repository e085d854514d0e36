/**
 * The words of an endpoint's name, without repetition: `ip-lookup`, `/lookup` gives
 * `['ip-lookup']`.
 */
export function endpointWords(slug: string, path: string): string[] {
  const word = path.slice(1)
  return slug === word || slug.endsWith(`-${word}`) ? [slug] : [slug, word]
}

/** `['get', 'provider-key']` → `getProviderKey`. */
export function camel(words: string[]): string {
  const parts = words.flatMap((word) => word.split(/[^A-Za-z0-9]+/)).filter((word) => word !== '')
  return parts
    .map((part, index) => (index === 0 ? lowerFirst(part) : part.charAt(0).toUpperCase() + part.slice(1)))
    .join('')
}

/** `['weather', '/current']` → `WeatherCurrent`. */
export function pascal(words: string[]): string {
  const name = camel(words)
  return name.charAt(0).toUpperCase() + name.slice(1)
}

const lowerFirst = (word: string): string => word.charAt(0).toLowerCase() + word.slice(1)
