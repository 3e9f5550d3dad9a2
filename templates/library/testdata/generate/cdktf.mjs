// Reads a @cdktf/provider-* package. Its files are generated from the schema
// that the provider itself prints, so their shape is regular: the interface in
// index.d.ts says what may and must be set, index.js says types, and which
// attributes there are to read.
import {readFileSync, readdirSync} from 'node:fs';
import {join} from 'node:path';

export function cdktfFacts(dir, {resources, dataSources}) {
  const {cdktf} = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
  const [, source] = cdktf.provider.name.match(/^[^/]+\/(.+)$/);
  const find = finder(join(dir, 'lib'));
  return {
    source,
    version: cdktf.provider.version,
    config: configuration(join(dir, 'lib', 'provider')),
    resources: Object.fromEntries(resources.map((type) => [type, read(find(type, false), type)])),
    data_sources: Object.fromEntries(dataSources.map((type) => [type, read(find(type, true), type)])),
  };
}

// finder returns the folder of a type. Names say most of it; where they do not
// (a class that would clash has another), all folders are looked through.
function finder(lib) {
  const folders = readdirSync(lib, {withFileTypes: true}).filter((e) => e.isDirectory()).map((e) => e.name);
  const holds = (folder, type) => readFileSync(join(lib, folder, 'index.js'), 'utf8').includes(`tfResourceType = "${type}"`);
  return (type, data) => {
    const candidates = folders.filter((f) => f.startsWith('data-') === data);
    const guess = data ? `data-${type.replaceAll('_', '-')}` : type.split('_').slice(1).join('-');
    const found = [guess, ...candidates].find((f) => candidates.includes(f) && holds(f, type));
    if (!found) throw new Error(`${data ? 'data source' : 'resource'} ${type}: not in ${lib}`);
    return join(lib, found);
  };
}

// text is that of all files of a folder: a large resource is spread over several.
const text = (folder, extension) => readdirSync(folder, {recursive: true, encoding: 'utf8'})
  .filter((name) => name.endsWith(extension)).sort()
  .map((name) => readFileSync(join(folder, name), 'utf8').replace(/^\/\/# sourceMappingURL.*$/m, '')).join('\n');

function read(folder, type) {
  const js = text(folder, '.js').replace(/\b\w*structs\w*_\d+\./g, '');
  const file = {
    interfaces: interfaces(text(folder, '.d.ts')),
    classes: classes(js),
    functions: functions(js),
  };
  const [, name] = js.match(new RegExp(`^(\\w+)\\.tfResourceType = "${type}";`, 'm'));
  const attributes = hclAttributes(file.classes[name].text);
  const settable = file.interfaces[`${name}Config`] ?? {};
  // The package lets every resource set its id; the providers do not.
  if (!folder.includes('/data-')) delete settable.id;
  return body(file, settable, file.classes[name], attributes);
}

// configuration is what the provider's own block takes.
function configuration(folder) {
  const js = text(folder, '.js').replace(/\b\w*structs\w*_\d+\./g, '');
  const file = {interfaces: interfaces(text(folder, '.d.ts')), classes: classes(js), functions: functions(js)};
  const [, name] = js.match(/^class (\w+) extends cdktf\.TerraformProvider \{/m);
  const settable = {...file.interfaces[`${name}Config`]};
  delete settable.alias; // belongs to the language
  return body(file, settable, undefined, hclAttributes(file.classes[name].text));
}

// body merges what may be set with what may be read.
function body(file, settable, klass, entries) {
  const out = {attributes: {}, blocks: {}};
  for (const name of new Set([...Object.keys(settable), ...Object.keys(klass?.reads ?? {})])) {
    const member = settable[name];
    const read = klass?.reads[name];
    const entry = entries[name];
    if (member?.block) {
      const struct = member.struct;
      out.blocks[name] = {
        nesting: {struct: 'single', list: 'list', set: 'set', map: 'map'}[entry.type],
        ...(member.required ? {min: 1} : {}),
        ...(member.many || entry.type === 'struct' ? {} : {max: 1}),
        ...nested(file, struct),
      };
      continue;
    }
    const mode = !member ? 'computed' : member.required ? 'required' : 'optional';
    out.attributes[name] = `${mode} ${member?.struct && entry ? nestedType(file, member, entry) : typeOf(file, entry, read)}`;
  }
  if (Object.keys(out.attributes).length === 0) delete out.attributes;
  if (Object.keys(out.blocks).length === 0) delete out.blocks;
  return out;
}

const nested = (file, struct) =>
  body(file, file.interfaces[struct] ?? {}, file.classes[`${struct}OutputReference`], hclAttributes(file.functions[struct] ?? ''));

// nestedType is the type of an attribute that has attributes of its own.
function nestedType(file, member, entry) {
  const inner = objectType(nested(file, member.struct));
  return {struct: inner, list: `list(${inner})`, set: `set(${inner})`, map: `map(${inner})`}[entry.type];
}

function objectType({attributes = {}, blocks = {}}) {
  const fields = Object.entries(attributes).map(([name, spec]) => {
    const [mode, ...type] = spec.split(' ');
    return [name, mode === 'optional' ? `optional(${type.join(' ')})` : type.join(' ')];
  });
  for (const [name, block] of Object.entries(blocks)) {
    const inner = objectType(block);
    fields.push([name, `optional(${block.nesting === 'single' ? inner : `${block.nesting}(${inner})`})`]);
  }
  return `object({${fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([n, t]) => `${n}=${t}`).join(',')}})`;
}

function typeOf(file, entry, read) {
  if (read?.struct) {
    const inner = objectType(nested(file, read.struct));
    return read.wrap === 'single' ? inner : `${read.wrap}(${inner})`;
  }
  const scalar = {string: 'string', number: 'number', boolean: 'bool', any: 'any'};
  if (entry && entry.type !== 'struct') {
    const storage = entry.storage.match(/^(string|number|boolean|any)(List|Map|Set|MapList)?$/);
    if (storage) {
      const inner = scalar[storage[1]];
      if (entry.type === 'simple') return inner;
      const deep = storage[2] === 'MapList' ? `map(${inner})` : inner;
      return `${entry.type}(${deep})`;
    }
  }
  return read?.type ?? 'any';
}

// interfaces maps the name of each interface to its members by their name in HCL.
function interfaces(dts) {
  const out = {};
  for (const [, name, text] of dts.matchAll(/^export interface (\w+)[^{]*\{\n([\s\S]*?)^\}/gm)) {
    out[name] = {};
    for (const [, comment, key, optional, type] of text.matchAll(/\/\*\*([\s\S]*?)\*\/\s*readonly (\w+)(\??): ([^;]+);/g)) {
      const hcl = comment.match(/#([a-z0-9_]+)\}/)?.[1] ?? snake(key);
      const plain = type.replace(/ \| cdktf\.IResolvable/g, '').trim();
      const struct = plain.match(/^(?:\{\s*\[key: string\]: )?([A-Z]\w+)(?:\s*\})?(\[\])?/);
      out[name][hcl] = {
        required: optional === '',
        block: new RegExp(`^\\s*\\* ${hcl} block\\s*$`, 'm').test(comment),
        struct: struct?.[1],
        many: plain.endsWith('[]') || plain.startsWith('{'),
      };
    }
  }
  return out;
}

// classes maps the name of each class to its text and to what can be read of it.
function classes(js) {
  const out = {};
  for (const [, name, text] of js.matchAll(/^class (\w+) extends [^\n]*\{\n([\s\S]*?)^\}/gm)) {
    const fields = {};
    for (const [, field, type, hcl, set] of text.matchAll(/this\.(_\w+) = new ([\w.]+)\(this, "(\w+)"(?:, (true|false))?\)/g)) {
      fields[field] = {hcl, ...wrapped(type, set === 'true')};
    }
    const reads = {};
    for (const [, value] of text.matchAll(/get \w+\(\) \{\s*return ([^;]+);/g)) {
      const plain = value.match(/get(\w+)Attribute\('(\w+)'\)/);
      if (plain) reads[plain[2]] = {type: getterType(plain[1], value.includes('Fn.tolist'))};
      const any = value.match(/interpolationForAttribute\('(\w+)'\)/);
      if (any) reads[any[1]] = {type: 'any'};
      const field = fields[value.replace('this.', '')];
      if (field) reads[field.hcl] = field;
    }
    out[name] = {text, reads};
  }
  return out;
}

function wrapped(type, set) {
  const scalar = type.match(/^cdktf\.(String|Number|Boolean|Any)(Map)?(List)?$/);
  if (scalar) {
    const inner = {String: 'string', Number: 'number', Boolean: 'bool', Any: 'any'}[scalar[1]];
    const map = scalar[2] ? `map(${inner})` : inner;
    return {type: scalar[3] ? `${set ? 'set' : 'list'}(${map})` : map};
  }
  const shape = type.match(/^(\w+?)(OutputReference|List|Map)$/);
  if (!shape) throw new Error(`a reference of an unknown class: ${type}`);
  return {struct: shape[1], wrap: {OutputReference: 'single', List: set ? 'set' : 'list', Map: 'map'}[shape[2]]};
}

function getterType(getter, set) {
  const list = set ? 'set' : 'list';
  return {
    String: 'string', Number: 'number', Boolean: 'bool', List: `${list}(string)`, NumberList: `${list}(number)`,
    StringMap: 'map(string)', NumberMap: 'map(number)', BooleanMap: 'map(bool)', AnyMap: 'any',
  }[getter] ?? 'any';
}

// functions maps a struct to the text of what turns it into HCL.
function functions(js) {
  const out = {};
  for (const [, name, text] of js.matchAll(/^function (\w+)ToHclTerraform\(struct\) \{\n([\s\S]*?)^\}/gm)) {
    out[name[0].toUpperCase() + name.slice(1)] = text;
  }
  return out;
}

function hclAttributes(text) {
  const out = {};
  for (const [, name, type, storage] of text.matchAll(
    /^\s+"?(\w+)"?: \{\s*value: [^\n]+,\s*isBlock: (?:true|false),\s*type: "(\w+)",\s*storageClassType: "(\w+)",/gm)) {
    out[name] = {type, storage};
  }
  return out;
}

const snake = (name) => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
