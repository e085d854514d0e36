import { typescriptName } from '../browser/client-names.js'

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
  return typescriptName(words.join(' '))
}

/** `['weather', '/current']` → `WeatherCurrent`. */
export function pascal(words: string[]): string {
  const name = camel(words)
  return name.charAt(0).toUpperCase() + name.slice(1)
}
