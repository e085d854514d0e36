import type { Catalog } from './catalog.ts'
import { fallbackVariables } from './fallback.ts'
import { rankApis } from './search.ts'

const SUFFIXES = ['URL', 'KEY', 'CAPS']

/**
 * Sentences on variables that begin with `UPSTREAM_` and name no API or no setting, each with the nearest name: a typing
 * error would otherwise be silence.
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
    if (isSetting && known.has(middle)) return []
    const nearest = known.has(middle) ? middle : nearestVariable(middle || name.slice('UPSTREAM_'.length), catalog)
    const wanted = isSetting ? suffix : SUFFIXES.join(', _')
    const hint = nearest === undefined ? '' : `; did you mean UPSTREAM_${nearest}_${wanted}?`
    return [`${name} is the setting of no API${hint}`]
  })
}

function variableOf(slug: string): string {
  return slug.toUpperCase().replaceAll('-', '_')
}

function nearestVariable(text: string, catalog: Catalog): string | undefined {
  const [nearest] = rankApis([...catalog.values()], text.toLowerCase().replaceAll('_', ' '))
  return nearest && variableOf(nearest.slug)
}
