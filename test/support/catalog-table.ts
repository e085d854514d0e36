import type { Api } from '../../src/catalog/catalog.ts'
import { capWords } from '../../src/catalog/limit-words.ts'

/** Writes the catalog as a table in Markdown. */
export function catalogTable(apis: Api[]): string {
  const rows = apis.map(({ slug, upstream, endpoints }) => {
    const paths = [...endpoints.keys()].map((path) => `\`${path}\``).join(' ')
    return `| \`${slug}\` | ${paths} | ${upstream.description.replaceAll('|', '\\|')} | ${capWords(upstream.caps)} |`
  })
  return ['| API | endpoints | what it gives | limits at the source |', '|---|---|---|---|', ...rows].join('\n')
}
