import Type from 'typebox'
import {
  endpoint,
  flag,
  InvalidParameter,
  integer,
  invalid,
  isObject,
  items,
  members,
  nullable,
  number,
  path,
  text,
  texts,
  type Upstream,
} from '../catalog/upstream.ts'

// The data change with a new game, a few times in a decade; the upstream asks everyone to keep them.
const cache = {
  seconds: 86_400,
  staleWhileRevalidateSeconds: 86_400,
  staleIfErrorSeconds: 2_592_000,
  notFoundSeconds: 3_600,
}

const creatureGame: Upstream = {
  displayName: 'Creature game',
  category: 'games',
  description: 'Creatures and abilities of the Pokémon games, from PokéAPI.',
  tags: ['games', 'creatures', 'pokemon', 'abilities', 'reference'],
  keywords: ['pikachu', 'pokedex', 'monster', 'type', 'moves'],
  tierRequired: 'developer',
  terms: {
    summary: 'Free under a fair use policy: store what you request. Names are trademarks of Nintendo.',
    url: 'https://pokeapi.co/docs/v2#fairuse',
    attribution: 'Data by PokéAPI',
  },
  baseUrl: 'https://pokeapi.co',
  // There is no limit, but the addresses of those who overdo it are banned for good.
  caps: { concurrency: 4, rates: [{ max: 100, seconds: 60 }] },
  probe: { request: { path: path`/api/v2/` }, everySeconds: 300 },
  endpoints: {
    '/creature': endpoint({
      description: 'One creature by name or index.',
      parameters: Type.Object({
        name: Type.String({
          minLength: 1,
          maxLength: 60,
          pattern: '^[A-Za-z0-9 -]+$',
          description: 'Name of a form, such as pikachu or deoxys-normal, or its number',
        }),
      }),
      data: Type.Object({
        id: nullable(Type.Integer({ description: 'Number of the creature' })),
        name: nullable(Type.String({ description: 'Name of the creature, lower case' })),
        types: Type.Array(Type.String(), { description: 'One or two types, such as electric' }),
        height: nullable(Type.Number({ description: 'Decimetres' })),
        weight: nullable(Type.Number({ description: 'Hectograms' })),
        height_m: nullable(Type.Number({ description: 'Metres' })),
        weight_kg: nullable(Type.Number({ description: 'Kilograms' })),
        base_experience: nullable(Type.Number({ description: 'Experience points for defeating it' })),
        abilities: Type.Array(
          Type.Object({
            name: nullable(Type.String({ description: 'Name of the ability, lower case' })),
            is_hidden: nullable(Type.Boolean({ description: 'Whether it is the hidden ability' })),
            slot: nullable(Type.Number({ description: 'Position among its abilities, 1 to 3' })),
          }),
          { description: 'Abilities it can have' },
        ),
        stats: Type.Record(Type.String(), nullable(Type.Number({ description: 'Base value of the stat, 1 to 255' })), {
          description: 'Base values keyed by stat',
        }),
        species: nullable(Type.String({ description: 'Name of the species' })),
        sprite_url: nullable(Type.String({ description: 'Picture of the creature' })),
      }),
      cache,
      complete: ({ name }) => ({ name: resourceName(name) }),
      request: ({ name }) => ({ path: path`/api/v2/pokemon/${name}` }),
      map: ({ body }) => {
        const creature = members(body)
        if (integer(creature.id) === null) return invalid()
        const height = number(creature.height)
        const weight = number(creature.weight)
        return {
          id: integer(creature.id),
          name: text(creature.name),
          types: texts(bySlot(creature.types).map((entry) => members(entry.type).name)),
          height,
          weight,
          height_m: height === null ? null : height / 10,
          weight_kg: weight === null ? null : weight / 10,
          base_experience: number(creature.base_experience),
          abilities: items(creature.abilities)
            .filter(isObject)
            .map((entry) => ({
              name: text(members(entry.ability).name),
              is_hidden: flag(entry.is_hidden),
              slot: integer(entry.slot),
            })),
          stats: stats(creature.stats),
          species: text(members(creature.species).name),
          sprite_url: text(members(creature.sprites).front_default),
        }
      },
      example: recordedCreature(),
    }),
    '/ability': endpoint({
      description: 'One ability by name: what it does and which creatures have it.',
      parameters: Type.Object({
        name: Type.String({
          minLength: 1,
          maxLength: 60,
          pattern: '^[A-Za-z0-9 -]+$',
          description: 'Name of the ability, such as overgrow or lightning-rod',
        }),
      }),
      data: Type.Object({
        id: nullable(Type.Integer({ description: 'Number of the ability' })),
        name: nullable(Type.String({ description: 'Name of the ability, lower case' })),
        effect: nullable(Type.String({ description: 'English' })),
        generation: nullable(Type.String({ description: 'Games that introduced it, such as generation-iii' })),
        short_effect: nullable(Type.String({ description: 'English' })),
        is_main_series: nullable(Type.Boolean({ description: 'Whether it is from the main series of games' })),
        creatures: Type.Array(Type.String(), { description: 'Names of the creatures that can have it' }),
      }),
      cache,
      complete: ({ name }) => ({ name: resourceName(name) }),
      request: ({ name }) => ({ path: path`/api/v2/ability/${name}` }),
      map: ({ body }) => {
        const ability = members(body)
        if (integer(ability.id) === null) return invalid()
        // Entries come in any order of languages, and abilities of side games have none in English.
        const english = members(
          items(ability.effect_entries).find((entry) => members(members(entry).language).name === 'en'),
        )
        return {
          id: integer(ability.id),
          name: text(ability.name),
          effect: text(english.effect),
          generation: text(members(ability.generation).name),
          short_effect: text(english.short_effect),
          is_main_series: flag(ability.is_main_series),
          creatures: texts(items(ability.pokemon).map((entry) => members(members(entry).pokemon).name)),
        }
      },
      example: recordedAbility(),
    }),
  },
}

export default creatureGame

/** The name as the upstream writes it. An empty one would be answered with the list of all. */
function resourceName(given: string): string {
  const name = given.trim().toLowerCase().replace(/ +/g, '-')
  if (!/^[a-z0-9-]+$/.test(name))
    throw new InvalidParameter('name', 'a name has letters, digits, spaces and hyphens, like deoxys-normal')
  return name
}

function bySlot(entries: unknown): Record<string, unknown>[] {
  const slot = (entry: Record<string, unknown>) => integer(entry.slot) ?? Number.MAX_SAFE_INTEGER
  return items(entries)
    .filter(isObject)
    .toSorted((one, other) => slot(one) - slot(other))
}

function stats(entries: unknown): Record<string, number | null> {
  return Object.fromEntries(
    items(entries).flatMap((entry) => {
      const name = text(members(members(entry).stat).name)
      return name === null ? [] : [[name, number(members(entry).base_stat)]]
    }),
  )
}

function recordedCreature() {
  return {
    parameters: { name: 'pikachu' },
    // biome-ignore format: as recorded
    response: {
      abilities: [
        { ability: { name: 'static', url: '/api/v2/ability/9/' }, is_hidden: false, slot: 1 },
        { ability: { name: 'lightning-rod', url: '/api/v2/ability/31/' }, is_hidden: true, slot: 3 },
      ],
      base_experience: 112,
      cries: { latest: 'https://raw.githubusercontent.com/PokeAPI/cries/main/cries/pokemon/latest/25.ogg' },
      forms: [{ name: 'pikachu', url: '/api/v2/pokemon-form/25/' }],
      height: 4, id: 25, is_default: true, location_area_encounters: '/api/v2/pokemon/25/encounters', name: 'pikachu', order: 35,
      past_abilities: [{ abilities: [{ ability: null, is_hidden: true, slot: 3 }], generation: { name: 'generation-iv', url: '/api/v2/generation/4/' } }],
      past_types: [],
      species: { name: 'pikachu', url: '/api/v2/pokemon-species/25/' },
      sprites: {
        back_default: 'https://raw.githubusercontent.com/PokeAPI/sprites/master/sprites/pokemon/back/25.png',
        front_default: 'https://raw.githubusercontent.com/PokeAPI/sprites/master/sprites/pokemon/25.png',
      },
      stats: [
        { base_stat: 35, effort: 0, stat: { name: 'hp', url: '/api/v2/stat/1/' } },
        { base_stat: 55, effort: 0, stat: { name: 'attack', url: '/api/v2/stat/2/' } },
        { base_stat: 40, effort: 0, stat: { name: 'defense', url: '/api/v2/stat/3/' } },
        { base_stat: 50, effort: 0, stat: { name: 'special-attack', url: '/api/v2/stat/4/' } },
        { base_stat: 50, effort: 0, stat: { name: 'special-defense', url: '/api/v2/stat/5/' } },
        { base_stat: 90, effort: 2, stat: { name: 'speed', url: '/api/v2/stat/6/' } },
      ],
      types: [{ slot: 1, type: { name: 'electric', url: '/api/v2/type/13/' } }],
      weight: 60,
    },
    // biome-ignore format: as recorded
    data: {
      id: 25, name: 'pikachu', types: ['electric'], height: 4, weight: 60, height_m: 0.4, weight_kg: 6, base_experience: 112,
      abilities: [{ name: 'static', is_hidden: false, slot: 1 }, { name: 'lightning-rod', is_hidden: true, slot: 3 }],
      stats: { hp: 35, attack: 55, defense: 40, 'special-attack': 50, 'special-defense': 50, speed: 90 },
      species: 'pikachu', sprite_url: 'https://raw.githubusercontent.com/PokeAPI/sprites/master/sprites/pokemon/25.png',
    },
  }
}

function recordedAbility() {
  return {
    parameters: { name: 'overgrow' },
    // biome-ignore format: as recorded
    response: {
      effect_changes: [],
      effect_entries: [
        {
          effect: 'Quand ce Pokémon a 1/3 de ses PV restants ou moins, ses capacités de type Plante infligent 1.5× plus de dégâts réguliers.',
          language: { name: 'fr', url: '/api/v2/language/5/' },
          short_effect: 'Renforce les capacités Plante pour infliger 1.5× de dégâts à 1/3 des PV max ou moins.',
        },
        {
          effect: 'Wenn ein Pokémon mit dieser Fähigkeit nur noch 1/3 seiner maximalen KP oder weniger hat, werden all seine Pflanze Attacken verstärkt, so dass sie 1,5× so viel Regulärer Schaden anrichten wie sonst.',
          language: { name: 'de', url: '/api/v2/language/6/' },
          short_effect: 'Erhöht den Schaden von Pflanze Attacken um 50% wenn nur noch 1/3 der maximalen KP oder weniger übrig sind.',
        },
        {
          effect: 'When this Pokémon has 1/3 or less of its HP remaining, its Grass-type moves inflict 1.5× as much regular damage.',
          language: { name: 'en', url: '/api/v2/language/9/' },
          short_effect: 'Strengthens Grass moves to inflict 1.5× damage at 1/3 max HP or less.',
        },
      ],
      generation: { name: 'generation-iii', url: '/api/v2/generation/3/' },
      id: 65, is_main_series: true, name: 'overgrow',
      names: [{ language: { name: 'ja-hrkt', url: '/api/v2/language/1/' }, name: 'しんりょく' }],
      pokemon: [
        { is_hidden: false, pokemon: { name: 'bulbasaur', url: '/api/v2/pokemon/1/' }, slot: 1 },
        { is_hidden: false, pokemon: { name: 'ivysaur', url: '/api/v2/pokemon/2/' }, slot: 1 },
        { pokemon: { name: 'venusaur' } }, { pokemon: { name: 'chikorita' } }, { pokemon: { name: 'bayleef' } }, { pokemon: { name: 'meganium' } },
        { pokemon: { name: 'treecko' } }, { pokemon: { name: 'grovyle' } }, { pokemon: { name: 'sceptile' } }, { pokemon: { name: 'turtwig' } },
        { pokemon: { name: 'grotle' } }, { pokemon: { name: 'torterra' } }, { pokemon: { name: 'snivy' } }, { pokemon: { name: 'servine' } },
        { pokemon: { name: 'serperior' } }, { pokemon: { name: 'pansage' } }, { pokemon: { name: 'simisage' } }, { pokemon: { name: 'chespin' } },
        { pokemon: { name: 'quilladin' } }, { pokemon: { name: 'chesnaught' } }, { pokemon: { name: 'rowlet' } }, { pokemon: { name: 'dartrix' } },
        { pokemon: { name: 'decidueye' } }, { pokemon: { name: 'grookey' } }, { pokemon: { name: 'thwackey' } }, { pokemon: { name: 'rillaboom' } },
        { pokemon: { name: 'sprigatito' } }, { pokemon: { name: 'floragato' } }, { pokemon: { name: 'meowscarada' } },
        { pokemon: { name: 'venusaur-gmax' } }, { pokemon: { name: 'rillaboom-gmax' } }, { pokemon: { name: 'decidueye-hisui' } },
      ],
    },
    // biome-ignore format: as recorded
    data: {
      id: 65, name: 'overgrow',
      effect: 'When this Pokémon has 1/3 or less of its HP remaining, its Grass-type moves inflict 1.5× as much regular damage.',
      generation: 'generation-iii', short_effect: 'Strengthens Grass moves to inflict 1.5× damage at 1/3 max HP or less.', is_main_series: true,
      creatures: [
        'bulbasaur', 'ivysaur', 'venusaur', 'chikorita', 'bayleef', 'meganium', 'treecko', 'grovyle', 'sceptile', 'turtwig', 'grotle', 'torterra',
        'snivy', 'servine', 'serperior', 'pansage', 'simisage', 'chespin', 'quilladin', 'chesnaught', 'rowlet', 'dartrix', 'decidueye', 'grookey',
        'thwackey', 'rillaboom', 'sprigatito', 'floragato', 'meowscarada', 'venusaur-gmax', 'rillaboom-gmax', 'decidueye-hisui',
      ],
    },
  }
}
