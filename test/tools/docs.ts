/**
 * Writes the parts of documents that repeat what code says: the settings and the catalog. Usage:
 * `npm run docs`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadCatalog } from '../../src/catalog/catalog.ts'
import { SETTING_GROUPS } from '../../src/config/settings.ts'
import { catalogTable } from '../support/catalog-table.ts'
import { ROOT } from './sources.ts'

/** A part of a document that is made from code. */
export interface Block {
  file: string
  name: string
  text: string
}

/** Makes these parts anew from the code. */
export async function generatedBlocks(): Promise<Block[]> {
  return [
    { file: 'src/docs/operators/configuration.md', name: 'settings', text: settingTables() },
    {
      file: 'src/upstreams/README.md',
      name: 'catalog',
      text: catalogTable([...(await loadCatalog(new Map())).values()]),
    },
  ]
}

/**
 * The document with its part between the marks of `name` replaced.
 *
 * @throws Error if the document has no marks of this name
 */
export function withBlock(document: string, { file, name, text }: Block): string {
  const block = new RegExp(`(<!-- ${name}:[^>]*-->\n)[\\s\\S]*?(<!-- /${name} -->)`)
  if (!block.test(document)) throw new Error(`${file} has no part between <!-- ${name}: … --> and <!-- /${name} -->`)
  return document.replace(block, (_, begin: string, end: string) => `${begin}${text}\n${end}`)
}

/** The tables of the configuration page, in Markdown: every setting. */
function settingTables(): string {
  return SETTING_GROUPS.map(({ title, settings }) =>
    [
      `### ${title}`,
      '',
      '| variable | default | meaning |',
      '|---|---|---|',
      ...settings.map(
        ({ names, byDefault, about }) =>
          `| ${names.map((name) => `\`${name}\``).join(', ')} | ${byDefault} | ${about} |`,
      ),
    ].join('\n'),
  ).join('\n\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const block of await generatedBlocks()) {
    const path = join(ROOT, block.file)
    writeFileSync(path, withBlock(readFileSync(path, 'utf8'), block))
    console.log(`${block.file}: ${block.name}`)
  }
}
