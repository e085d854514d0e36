import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import type { Catalog } from './catalog.ts'
import { fallbackVariables } from './fallback.ts'
import { isWithin } from './nearest-name.ts'
import { rankApis } from './search.ts'

const SUFFIXES = ['URL', 'KEY', 'CAPS']

/**
 * Warns of environment variables that are probably misspelt settings. Otherwise nobody would
 * notice, for example, that a cap was not lowered.
 */
export function warnOfUnknownVariables(config: Config, catalog: Catalog, log: Log): void {
  const { names, known } = config.unknownVariables
  const sentences = [...unknownVariables(config.upstreams.variables, catalog), ...misspeltSettings(names, known)]
  for (const sentence of sentences) log.warn(sentence)
}

/**
 * Letters that a name must have for each typing error in it, so that `HOME` is not taken for a
 * misspelt `HOST`.
 */
const LETTERS_AN_ERROR = 5

/** Variables that OpenSSL, curl and Python read, and that many machines set for every program. */
const READ_BY_OTHERS = ['SSL_CERT_FILE', 'SSL_CERT_DIR']

/**
 * A sentence for each variable whose name differs from the name of a setting by one or two typing
 * errors.
 */
export function misspeltSettings(names: string[], known: string[]): string[] {
  return names.flatMap((name) => {
    if (!/^[A-Z][A-Z0-9_]+$/.test(name) || READ_BY_OTHERS.includes(name)) return []
    const errorsMax = Math.min(2, Math.floor(name.length / LETTERS_AN_ERROR))
    const meant = errorsMax > 0 ? known.find((setting) => isWithin(errorsMax, name, setting)) : undefined
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${meant}?`]
  })
}

/**
 * A sentence for each variable that begins with `UPSTREAM_` and names no API or no setting, with
 * the nearest name. Also a sentence for each key that no request carries.
 */
export function unknownVariables(names: string[], catalog: Catalog): string[] {
  const slugs = [...catalog.values()].flatMap(({ slug, fallback }) => [
    slug,
    ...(fallback ? [fallbackVariables(slug)] : []),
  ])
  const known = new Map(slugs.map((slug) => [variableOf(slug), slug]))
  return names.flatMap((name) => {
    const [, middle = '', suffix = ''] = /^UPSTREAM_(.+)_([A-Z0-9]+)$/.exec(name) ?? []
    const isSetting = SUFFIXES.includes(suffix)
    const slug = known.get(middle)
    if (isSetting && slug !== undefined) {
      const isInVain = suffix === 'KEY' && !catalog.get(slug)?.upstream.credential
      return isInVain ? [`${name} has no effect, because the gateway sends no key to ${slug}`] : []
    }
    const nearest = slug !== undefined ? middle : nearestVariable(middle || name.slice('UPSTREAM_'.length), catalog)
    const wanted = isSetting ? suffix : SUFFIXES.join(', _')
    const hint = nearest === undefined ? '' : `; did you mean UPSTREAM_${nearest}_${wanted}?`
    return [`${name} is not a setting of an API in the catalog${hint}`]
  })
}

function variableOf(slug: string): string {
  return slug.toUpperCase().replaceAll('-', '_')
}

function nearestVariable(text: string, catalog: Catalog): string | undefined {
  const [nearest] = rankApis([...catalog.values()], text.toLowerCase().replaceAll('_', ' '))
  return nearest && variableOf(nearest.slug)
}
