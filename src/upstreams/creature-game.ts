import Type from 'typebox'
import { field, record, required, type Source } from '../catalog/fields.ts'
import { integer, items, listedObjects, mapObjects, members, nullable, number, text } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter } from '../catalog/parameter-values.ts'
import { namesOf, param } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/creature-game.json' with { type: 'json' }

// The data change with a new game, a few times in a decade; the upstream asks everyone to keep
// them.
const cache = { ...freshFor(lifetime.day), staleIfErrorSeconds: lifetime.month, notFoundSeconds: lifetime.hour }

/**
 * The ending of a form's name at the upstream, for endings that differ from the word that the games
 * put before the species.
 */
const suffixByKind = new Map([
  ['alolan', 'alola'],
  ['dawn-wings', 'dawn'],
  ['dusk-mane', 'dusk'],
  ['galarian', 'galar'],
  ['gigantamax', 'gmax'],
  ['hisuian', 'hisui'],
  ['ice-rider', 'ice'],
  ['paldean', 'paldea'],
  ['shadow-rider', 'shadow'],
])

/** Words before a species by which the games name one of its forms. */
const KINDS = [
  ...suffixByKind.keys(),
  ...['alola', 'galar', 'hisui', 'paldea'],
  ...['ash', 'black', 'bloodmoon', 'cornerstone-mask', 'crowned', 'eternal', 'eternamax', 'fan', 'frost', 'gorging'],
  ...['gulping', 'hearthflame-mask', 'heat', 'mega', 'mow', 'origin', 'primal', 'rainy', 'snowy', 'sunny', 'ultra'],
  ...['wash', 'wellspring-mask', 'white'],
]

const KIND_FIRST = new RegExp(`^(${KINDS.join('|')})-(.+?)(-[xyz])?$`)

const KIND_LAST = new RegExp(`-(${[...suffixByKind.keys()].join('|')})$`)

/** In "Attack Forme Deoxys", the word before "Forme" names the form. */
const FORM_FIRST = /^(.+)-(?:forme?|cloak|style|mode)-(.+?)(-[xyz])?$/

/**
 * Forms with longer names at the upstream. If a creature has several forms of one kind, such as
 * `tauros-paldea`, the name means the usual form. The names of Miraidon's forms keep the word
 * "mode".
 */
const fullNameOf = new Map([
  ['darmanitan-galar', 'darmanitan-galar-standard'],
  ['miraidon-aquatic', 'miraidon-aquatic-mode'],
  ['miraidon-drive', 'miraidon-drive-mode'],
  ['miraidon-glide', 'miraidon-glide-mode'],
  ['miraidon-low-power', 'miraidon-low-power-mode'],
  ['tauros-paldea', 'tauros-paldea-combat-breed'],
  ['toxtricity-gmax', 'toxtricity-amped-gmax'],
  ['urshifu-gmax', 'urshifu-single-strike-gmax'],
])

/**
 * Species whose forms all have longer names. The number of a species is the number of its usual
 * form.
 */
// biome-ignore format: a list to look through
const numberOfSpecies = new Map(Object.entries({
  deoxys: 386, wormadam: 413, giratina: 487, shaymin: 492, basculin: 550, darmanitan: 555, frillish: 592, jellicent: 593, tornadus: 641,
  thundurus: 642, landorus: 645, keldeo: 647, meloetta: 648, pyroar: 668, meowstic: 678, aegislash: 681, pumpkaboo: 710, gourgeist: 711,
  zygarde: 718, oricorio: 741, lycanroc: 745, wishiwashi: 746, minior: 774, mimikyu: 778, toxtricity: 849, eiscue: 875, indeedee: 876,
  morpeko: 877, urshifu: 892, basculegion: 902, enamorus: 905, oinkologne: 916, maushold: 925, squawkabilly: 931, palafin: 964,
  tatsugiri: 978, dudunsparce: 982,
}))

/** "Sky Shaymin": all forms of these species have longer names, so the words before it name one. */
const SPECIES_LAST = new RegExp(`^(.+)-(${[...numberOfSpecies.keys()].join('|')})$`)

const creature = record({
  id: required.notNull(field.integer('id', 'Number of the creature')),
  name: field.text('name', 'Name of the creature, lower case'),
  types: field.texts(
    ({ types }) => mapObjects(bySlot(types), ({ type }) => members(type).name),
    'One or two types, such as electric',
  ),
  height: field.number('height', 'Decimetres'),
  weight: field.number('weight', 'Hectograms'),
  height_m: field.number(({ height }) => tenthOf(height), 'Metres'),
  weight_kg: field.number(({ weight }) => tenthOf(weight), 'Kilograms'),
  base_experience: field.number('base_experience', 'Experience points for defeating it'),
  abilities: field.records('abilities', 'Abilities it can have', {
    name: field.text('ability.name', 'Name of the ability, lower case'),
    is_hidden: field.flag('is_hidden', 'Whether it is the hidden ability'),
    slot: field.wholeNumber('slot', 'Position among its abilities, 1 to 3'),
  }),
  stats: required.computed(
    Type.Record(Type.String(), nullable(Type.Number({ description: 'Base value of the stat, 1 to 255' })), {
      description: 'Base values keyed by stat',
    }),
    ({ stats }) => statsOf(stats),
  ),
  species: field.text('species.name', 'Name of the species'),
  sprite_url: field.text('sprites.front_default', 'Picture of the creature'),
})

const ability = record({
  id: required.notNull(field.integer('id', 'Number of the ability')),
  name: field.text('name', 'Name of the ability, lower case'),
  effect: field.text((source) => english(source).effect, 'English'),
  generation: field.text('generation.name', 'Games that introduced it, such as generation-iii'),
  short_effect: field.text((source) => english(source).short_effect, 'English'),
  is_main_series: field.flag('is_main_series', 'Whether it is from the main series of games'),
  creatures: field.texts(
    (source) => mapObjects(source.pokemon, ({ pokemon }) => members(pokemon).name),
    'Names of the creatures that can have it',
  ),
})

export default upstream({
  displayName: 'Creature game',
  category: 'games',
  description: 'Creatures and abilities of the Pokémon games, from PokéAPI.',
  tags: ['games', 'creatures', 'pokemon', 'abilities', 'reference'],
  keywords: words('pikachu pokedex monster type moves'),
  terms: {
    summary: 'Free under a fair use policy: store what you request. Names are trademarks of Nintendo.',
    url: 'https://pokeapi.co/docs/v2#fairuse',
    attribution: 'Data by PokéAPI',
  },
  baseUrl: 'https://pokeapi.co',
  // There is no limit, but the address of a client that overdoes it is banned for good.
  caps: { concurrency: 4, rates: [{ max: 100, seconds: 60 }] },
  probe: { request: { path: path`/api/v2/` }, everySeconds: 300 },
  mayLack: words('base_experience sprite_url effect short_effect'),
  endpoints: {
    '/creature': endpoint({
      description: 'One creature by name or index.',
      parameters: {
        name: param.text(
          'Name as the games write it, such as Mr. Mime or Alolan Raichu, of a form such as deoxys-attack, or its number',
          { maxLength: 60, normalize: creatureName, aliases: namesOf.query },
        ),
      },
      data: creature,
      cache,
      request: ({ name }) => ({ path: path`/api/v2/pokemon/${name}` }),
      isNotFound,
      example: recordings['/creature'],
    }),
    '/ability': endpoint({
      description: 'One ability by name: what it does and which creatures have it.',
      parameters: {
        name: param.text('Name of the ability, such as overgrow or Lightning Rod', {
          maxLength: 60,
          normalize: resourceName,
          aliases: namesOf.query,
        }),
      },
      data: ability,
      cache,
      request: ({ name }) => ({ path: path`/api/v2/ability/${name}` }),
      isNotFound,
      example: recordings['/ability'],
    }),
  },
})

/**
 * The upstream's name of the form that a name of the games means; for a species without such a form
 * its number.
 */
function creatureName(parameter: string, given: string): string {
  const name = resourceName(parameter, given)
    // "Attack Forme", "Plant Cloak": the upstream's names contain only the first word.
    .replace(/(?<=-.+)-(?:forme?|cloak|style|mode)$/, '')
    .replace(/^nidoran-(f|m)(?:em)?ale$/, 'nidoran-$1')
    .replace(KIND_LAST, (_, kind) => `-${suffixByKind.get(kind)}`)
  const [, kind, species, letter = ''] = FORM_FIRST.exec(name) ?? SPECIES_LAST.exec(name) ?? KIND_FIRST.exec(name) ?? []
  const form = kind === undefined ? name : `${species}-${suffixByKind.get(kind) ?? kind}${letter}`
  return fullNameOf.get(form) ?? String(numberOfSpecies.get(form) ?? form)
}

/** An unknown name is answered in plain text; an unknown route is a 400. */
function isNotFound({ headers, errorText }: UpstreamResponse): boolean {
  return errorText?.trim() === 'Not Found' && headers['content-type']?.startsWith('text/plain') === true
}

/** The name as the upstream writes it. An empty name would be answered with the list of all. */
function resourceName(parameter: string, given: string): string {
  const isNidoran = /^\s*nidoran/i.test(given)
  const name = given
    .replace(/['’‘ʼ`´＇]/g, '')
    .normalize('NFKD')
    .replace(/♀/g, isNidoran ? '-f' : '-female')
    .replace(/♂/g, isNidoran ? '-m' : '-male')
    .replace(/\p{M}|(?<=\d)%(?=[\s)]|$)/gu, '')
    .toLowerCase()
    .replace(/[\s_.:,!()\p{Pd}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
    // The games write numbers with leading zeros.
    .replace(/^(?:#|no-)?0*(?=\d+$)/, '')
  // Without its sign, a number below zero would be the number of another creature.
  if (/^\s*[\p{Pd}−]\d/u.test(given) || !/^[a-z0-9-]*[a-z0-9][a-z0-9-]*$/.test(name))
    throw new InvalidParameter(parameter, 'a name has letters, digits, spaces and hyphens, like deoxys-normal')
  return name
}

function bySlot(entries: unknown): unknown {
  const slot = (entry: Source) => integer(entry.slot) ?? Number.MAX_SAFE_INTEGER
  return listedObjects(entries)?.toSorted((one, other) => slot(one) - slot(other)) ?? entries
}

/**
 * The texts in English: entries come in any order of languages, and abilities of side games have
 * none in English.
 */
function english({ effect_entries }: Source): Source {
  return members(items(effect_entries).find((entry) => members(members(entry).language).name === 'en'))
}

function tenthOf(value: unknown): number | null {
  return typeof value === 'number' ? value / 10 : null
}

/** Undefined if the upstream has something else in place of the stats. */
function statsOf(entries: unknown): Record<string, number | null> | undefined {
  const listed = listedObjects(entries ?? [])
  const named = listed?.flatMap((entry) => {
    const name = text(members(entry.stat).name)
    return name === null ? [] : [[name, number(entry.base_stat)] as const]
  })
  const isRead = named !== undefined && (named.length > 0 || listed?.length === 0)
  return isRead ? Object.fromEntries(named) : undefined
}
