import assert from 'node:assert/strict'
import { test } from 'node:test'
import Value from 'typebox/value'
import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { InvalidParameter } from '../../src/catalog/parameter-values.ts'
import creatureGame from '../../src/upstreams/creature-game.ts'
import { interpretAnswers } from '../../workers/upstream/interpret.ts'

const creature = creatureGame.endpoints['/creature'] ?? assert.fail()
const ability = creatureGame.endpoints['/ability'] ?? assert.fail()
const context = { now: 0 }

function interpret(endpoint: Endpoint, status: number, body: unknown) {
  return interpretAnswers({ upstream: creatureGame, endpoint }, [{ status, headers: {}, body }], {
    parameters: { name: 'x' },
    context,
  })
}

function dataOf(endpoint: Endpoint, body: unknown) {
  const result = interpret(endpoint, 200, body)
  return 'data' in result ? result.data : assert.fail(result.responseClass.code)
}

function codeOf(endpoint: Endpoint, status: number, body: unknown) {
  const result = interpret(endpoint, status, body)
  return 'responseClass' in result ? result.responseClass.code : assert.fail(`data: ${JSON.stringify(result.data)}`)
}

test('the recorded answers map to the recorded data', () => {
  for (const endpoint of [creature, ability])
    assert.deepEqual(dataOf(endpoint, endpoint.example.response), endpoint.example.data)
})

test('names and numbers go into the path', () => {
  assert.deepEqual(creature.request({ name: 'pikachu' }, context), { path: '/api/v2/pokemon/pikachu' })
  assert.deepEqual(creature.request({ name: '25' }, context), { path: '/api/v2/pokemon/25' })
  assert.deepEqual(ability.request({ name: 'overgrow' }, context), { path: '/api/v2/ability/overgrow' })
})

test('names are trimmed, lower-cased and hyphenated', () => {
  for (const endpoint of [creature, ability]) {
    assert.deepEqual(endpoint.complete?.({ name: ' Pikachu ' }, context), { name: 'pikachu' })
    assert.deepEqual(endpoint.complete?.({ name: 'Lightning  Rod' }, context), { name: 'lightning-rod' })
  }
})

test('an empty name, to which the upstream would answer with the list of all creatures, is refused before the request', () => {
  for (const endpoint of [creature, ability]) {
    assert.ok(!Value.Check(endpoint.parameters, { name: '' }))
    assert.throws(() => endpoint.complete?.({ name: '   ' }, context), InvalidParameter)
    assert.throws(() => endpoint.request({ name: '' }, context), InvalidParameter)
  }
})

test('names from which no name of the upstream can be made are refused', () => {
  assert.ok(!Value.Check(creature.parameters, { name: 'x'.repeat(61) }))
  for (const endpoint of [creature, ability]) {
    for (const name of ['../ability', 'a%20b', '25+', '%', 'a/b', 'ピカチュウ', '...', '-', '?', "'", '♀?'])
      assert.throws(() => endpoint.complete?.({ name }, context), InvalidParameter, name)
  }
})

test('names as the games write them are valid', () => {
  // biome-ignore format: a list to look through
  const names: [string, string][] = [
    ['Mr. Mime', 'mr-mime'], ["Farfetch'd", 'farfetchd'], ['Sirfetch’d', 'sirfetchd'], ['Type: Null', 'type-null'], ['Flabébé', 'flabebe'], ['FLABE\u0301BE\u0301', 'flabebe'],
    ['Nidoran♀', 'nidoran-f'], ['Nidoran♂', 'nidoran-m'], ['Nidoran ♀\uFE0F', 'nidoran-f'], ['Mime Jr.', 'mime-jr'], ['Mr. Rime', 'mr-rime'], ['Ho-Oh', 'ho-oh'],
    ['Porygon-Z', 'porygon-z'], ['Jangmo-o', 'jangmo-o'], ['Tapu Koko', 'tapu-koko'], ['Wo-Chien', 'wo-chien'], ['Great Tusk', 'great-tusk'], ['mr_mime', 'mr-mime'],
    ['Alolan Raichu', 'raichu-alola'], ['Galarian Mr. Mime', 'mr-mime-galar'], ['Hisuian Zorua', 'zorua-hisui'], ['Paldean Wooper', 'wooper-paldea'],
    ['Mega Charizard X', 'charizard-mega-x'], ['Mega Venusaur', 'venusaur-mega'], ['Gigantamax Pikachu', 'pikachu-gmax'], ['Primal Groudon', 'groudon-primal'],
    ['Meganium', 'meganium'], ['deoxys-attack', 'deoxys-attack'], ['25', '25'], ['0025', '25'], ['0', '0'],
    ['Farfetch`d', 'farfetchd'], ['Farfetch´d', 'farfetchd'], ['Farfetchʼd', 'farfetchd'], ['Galarian Darmanitan', 'darmanitan-galar-standard'],
    ['Gigantamax Toxtricity', 'toxtricity-amped-gmax'],
    ['Mr.Mime', 'mr-mime'], ['Type:Null', 'type-null'], ['Type：Null', 'type-null'], ['Ｐｉｋａｃｈｕ', 'pikachu'], ['#025', '25'], ['No. 25', '25'], ['№ 25', '25'],
    ['Nidoran (female)', 'nidoran-f'], ['Nidoran Male', 'nidoran-m'], ['Meowstic♀', 'meowstic-female'], ['Basculegion ♂', 'basculegion-male'],
    ['Zygarde 10%', 'zygarde-10'], ['Deoxys Attack Forme', 'deoxys-attack'], ['Wormadam Plant Cloak', 'wormadam-plant'],
    ['Keldeo (Resolute Form)', 'keldeo-resolute'], ['Castform', 'castform'], ['Origin Forme Dialga', 'dialga-origin'], ['Therian Landorus', 'landorus-therian'],
    ['Heat Rotom', 'rotom-heat'], ['Black Kyurem', 'kyurem-black'], ['Dusk Mane Necrozma', 'necrozma-dusk'], ['Ultra Necrozma', 'necrozma-ultra'],
    ['Zygarde 10% Forme', 'zygarde-10'], ['10% Forme Zygarde', 'zygarde-10'], ['Attack Forme Deoxys', 'deoxys-attack'], ['Midnight Form Lycanroc', 'lycanroc-midnight'],
    ['Sandy Cloak Wormadam', 'wormadam-sandy'], ['Pom-Pom Style Oricorio', 'oricorio-pom-pom'], ['Zen Mode Darmanitan', 'darmanitan-zen'],
    ['Raichu (Alolan Form)', 'raichu-alola'], ['Alolan Form Raichu', 'raichu-alola'], ['Raichu Alolan', 'raichu-alola'], ['Alola Raichu', 'raichu-alola'],
    ['Galar Ponyta', 'ponyta-galar'], ['Pikachu Gigantamax', 'pikachu-gmax'], ['Darmanitan (Galarian)', 'darmanitan-galar-standard'],
    ['miraidon-drive-mode', 'miraidon-drive-mode'], ['Miraidon (Low-Power Mode)', 'miraidon-low-power-mode'], ['Glide Mode Miraidon', 'miraidon-glide-mode'],
    ['Mega Form Charizard X', 'charizard-mega-x'], ['Sky Shaymin', 'shaymin-sky'], ['Rapid Strike Urshifu', 'urshifu-rapid-strike'],
    ['White-Striped Basculin', 'basculin-white-striped'], ['White Plumage Squawkabilly', 'squawkabilly-white-plumage'], ['Female Indeedee', 'indeedee-female'],
    ['Midnight Lycanroc', 'lycanroc-midnight'], ['Pa’u Oricorio', 'oricorio-pau'], ['10% Zygarde', 'zygarde-10'], ['Mega Zygarde', 'zygarde-mega'],
    ['Bloodmoon Ursaluna', 'ursaluna-bloodmoon'], ['Crowned Zacian', 'zacian-crowned'], ['Rainy Castform', 'castform-rainy'], ['Eternal Floette', 'floette-eternal'],
    ['Wellspring Mask Ogerpon', 'ogerpon-wellspring-mask'], ['Gorging Cramorant', 'cramorant-gorging'],
    ['Ice Rider Calyrex', 'calyrex-ice'], ['Ash-Greninja', 'greninja-ash'], ['Eternamax Eternatus', 'eternatus-eternamax'],
  ]
  for (const [given, sent] of names)
    assert.deepEqual(creature.complete?.({ name: given }, context), { name: sent }, given)
  assert.deepEqual(ability.complete?.({ name: 'Lightning Rod' }, context), { name: 'lightning-rod' })
  assert.deepEqual(ability.complete?.({ name: "Dragon's Maw" }, context), { name: 'dragons-maw' })
  assert.deepEqual(ability.complete?.({ name: 'Soul-Heart' }, context), { name: 'soul-heart' })
  assert.deepEqual(ability.complete?.({ name: '065' }, context), { name: '65' })
  assert.deepEqual(creature.complete?.({ name: '25.0' }, context), { name: '25-0' }, 'never the creature 250')
  for (const below of ['-1', '−25', ' -025', '–25', '－25'])
    assert.throws(() => creature.complete?.({ name: below }, context), /is invalid/, 'never the creature 1 or 25')
})

test('a species without a form of its name is requested by its number', () => {
  for (const [given, sent] of [
    ['Deoxys', '386'],
    ['mimikyu', '778'],
    ['Basculegion', '902'],
    ['Dudunsparce', '982'],
  ]) {
    assert.deepEqual(creature.complete?.({ name: given }, context), { name: sent })
  }
  assert.deepEqual(ability.complete?.({ name: 'Deoxys' }, context), { name: 'deoxys' }, 'abilities are no species')
})

test('the list of all creatures is an invalid response, and not an empty creature', () => {
  const list = { count: 1351, next: null, previous: null, results: [{ name: 'bulbasaur', url: '/api/v2/pokemon/1/' }] }
  assert.equal(codeOf(creature, 200, list), 'UPSTREAM_INVALID_RESPONSE')
  assert.equal(codeOf(ability, 200, list), 'UPSTREAM_INVALID_RESPONSE')
})

test('the plain text for an unknown name is UPSTREAM_NOT_FOUND, stored for an hour', () => {
  for (const endpoint of [creature, ability]) {
    const notFoundAnswer = { status: 404, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: undefined }
    const call = { parameters: { name: 'x' }, context }
    const codeOfText = (errorText: string) => {
      const result = interpretAnswers({ upstream: creatureGame, endpoint }, [{ ...notFoundAnswer, errorText }], call)
      return 'responseClass' in result ? result.responseClass.code : assert.fail()
    }
    assert.equal(codeOfText('Not Found'), 'UPSTREAM_NOT_FOUND')
    assert.equal(codeOfText('404 page not found'), 'UPSTREAM_ERROR')
    assert.equal(codeOf(endpoint, 404, undefined), 'UPSTREAM_ERROR')
    assert.equal(endpoint.cache?.notFoundSeconds, 3_600)
  }
})

test('a 400 in plain text, the answer of an unknown route, is a failure like a 504', () => {
  assert.equal(codeOf(creature, 400, undefined), 'UPSTREAM_ERROR')
  assert.equal(codeOf(creature, 504, undefined), 'UPSTREAM_ERROR')
})

test('types are ordered by slot', () => {
  const types = [{ slot: 2, type: { name: 'poison' } }, { slot: 1, type: { name: 'grass' } }, null]
  assert.deepEqual(dataOf(creature, { id: 1, types }).types, ['grass', 'poison'])
})

test('height and weight are in the units of the upstream, and in metres and kilograms', () => {
  const data = dataOf(creature, { id: 1, height: 7, weight: 69 })
  assert.deepEqual([data.height, data.height_m, data.weight, data.weight_kg], [7, 0.7, 69, 6.9])
})

test('an ability that is null has no name', () => {
  const abilities = [{ ability: null, is_hidden: true, slot: 3 }]
  assert.deepEqual(dataOf(creature, { id: 1, abilities }).abilities, [{ name: null, is_hidden: true, slot: 3 }])
})

test('members that a creature lacks are null or empty', () => {
  assert.deepEqual(
    dataOf(creature, { id: 10001, name: 'form', base_experience: null, sprites: { front_default: null } }),
    {
      id: 10001,
      name: 'form',
      types: [],
      height: null,
      weight: null,
      height_m: null,
      weight_kg: null,
      base_experience: null,
      abilities: [],
      stats: {},
      species: null,
      sprite_url: null,
    },
  )
})

test('the effect is in English, whatever the order of the languages', () => {
  const entry = (name: string, effect: string) => ({ effect, short_effect: `${effect} short`, language: { name } })
  const data = dataOf(ability, {
    id: 1,
    effect_entries: [entry('fr', 'un'), entry('en', 'one'), entry('de', 'eins')],
  })
  assert.deepEqual([data.effect, data.short_effect], ['one', 'one short'])
})

test('the effect is null for an ability of a side game, which has no text in English', () => {
  const entries = [{ effect: 'un', short_effect: 'u', language: { name: 'fr' } }]
  for (const effect_entries of [[], entries]) {
    const data = dataOf(ability, { id: 10001, is_main_series: false, effect_entries })
    assert.deepEqual([data.effect, data.short_effect, data.is_main_series], [null, null, false])
  }
})

test('answers are stored for a day, as the upstream requests', () => {
  for (const endpoint of [creature, ability]) assert.equal(endpoint.cache?.seconds, 86_400)
})

test('an answer whose types or stats cannot be read is invalid, and not a creature without them', () => {
  const codeFor = (types: unknown) => {
    const read = interpret(creature, 200, { id: 1, name: 'a', types })
    return 'data' in read ? read.data.types : read.responseClass.code
  }
  for (const types of [
    { first: 'fire' },
    'fire',
    [{ slot: 1, kind: { name: 'fire' } }],
    [{ slot: 1, type: 3 }],
    [null],
  ])
    assert.equal(codeFor(types), 'UPSTREAM_INVALID_RESPONSE', JSON.stringify(types))
  for (const types of [[], null]) assert.deepEqual(codeFor(types), [])
  for (const stats of [{ hp: 35 }, 'hp', [{ name: 'hp', value: 35 }], [null]])
    assert.equal(codeOf(creature, 200, { id: 1, stats }), 'UPSTREAM_INVALID_RESPONSE', JSON.stringify(stats))
})
