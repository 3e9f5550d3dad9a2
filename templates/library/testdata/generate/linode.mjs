// Reads @pulumi/linode. It is generated from the provider's schema by a bridge
// that renames (camel case, plurals of repeated blocks), unwraps lists of at
// most one, and does not say which of its objects are blocks; the tables below
// put that back.
import {existsSync, readFileSync} from 'node:fs';
import {join} from 'node:path';

// The release of the provider that the package describes, to the minor version.
// The package does not say; this is the oldest one that has what it has.
const version = '3.1.0';

// Names that the bridge made plural.
const singular = {acls: 'acl', filters: 'filter', inbounds: 'inbound', ipv4s: 'ipv4', ipv6s: 'ipv6', outbounds: 'outbound', pools: 'pool', taints: 'taint'};

// Objects that are lists of at most one to the provider.
const wrapped = new Set(['acl', 'autoscaler', 'control_plane']);

// Objects that are arguments (`x = [...]`), not blocks (`x { ... }`), though they can be set.
const argument = new Set([]);

// What the bridge lets objects set and the provider does not.
const readOnly = new Set(['LkeClusterPool.id', 'LkeClusterPool.nodes']);

// What is a set to the provider; the bridge has only arrays.
const sets = new Set(['external_pool_tags', 'ipv4', 'ipv6', 'linodes', 'nodebalancers', 'tags', 'taint']);

export function linodeFacts(dir, {resources, dataSources}) {
  const types = {
    input: interfaces(readFileSync(join(dir, 'types', 'input.d.ts'), 'utf8')),
    output: interfaces(readFileSync(join(dir, 'types', 'output.d.ts'), 'utf8')),
  };
  return {
    source: 'linode/linode',
    version,
    config: body(types, interfaces(readFileSync(join(dir, 'provider.d.ts'), 'utf8')).ProviderArgs, {}),
    resources: Object.fromEntries(resources.map((type) => [type, resource(dir, types, type)])),
    data_sources: Object.fromEntries(dataSources.map((type) => [type, dataSource(dir, types, type)])),
  };
}

// The bridge writes these words as one.
const camel = (type) => type.split('_').slice(1).map((w) => w[0].toUpperCase() + w.slice(1)).join('').replace(/^Nodebalancer/, 'NodeBalancer').replace(/^Stackscript/, 'StackScript');

function load(dir, name, type) {
  const path = join(dir, `${name}.d.ts`);
  if (!existsSync(path)) throw new Error(`${type}: not in ${dir}`);
  return readFileSync(path, 'utf8');
}

function resource(dir, types, type) {
  const name = camel(type);
  const text = load(dir, name[0].toLowerCase() + name.slice(1), type);
  const [, klass] = text.match(/export declare class \w+ extends pulumi\.CustomResource \{\n([\s\S]*?)^\}/m);
  const args = interfaces(text)[`${name}Args`];
  return body(types, args, {...members(klass), id: {required: false, type: 'string'}});
}

function dataSource(dir, types, type) {
  const name = `Get${camel(type)}`;
  const all = interfaces(load(dir, name[0].toLowerCase() + name.slice(1), type));
  return body(types, all[`${name}Args`] ?? {}, all[`${name}Result`]);
}

function body(types, settable, readable) {
  const out = {attributes: {}, blocks: {}};
  for (const key of new Set([...Object.keys(settable), ...Object.keys(readable)])) {
    const name = hclName(key, (settable[key] ?? readable[key]).type);
    const set = settable[key];
    const shape = parse((set ?? readable[key]).type);
    if (set && shape.struct && !argument.has(name)) {
      out.blocks[name] = {
        nesting: sets.has(name) ? 'set' : 'list',
        ...(set.required ? {min: 1} : {}),
        ...(shape.many ? {} : {max: 1}),
        ...struct(types, shape),
      };
      continue;
    }
    const mode = !set ? 'computed' : set.required ? 'required' : 'optional';
    out.attributes[name] = `${mode} ${typeOf(types, name, shape)}`;
  }
  if (Object.keys(out.attributes).length === 0) delete out.attributes;
  if (Object.keys(out.blocks).length === 0) delete out.blocks;
  return out;
}

// struct is the body of an object: what the input type has can be set, what
// only the output type has can be read.
function struct(types, {struct: name, many}) {
  const plain = name.replace(/Args$/, '');
  const input = types.input[`${plain}Args`] ?? types.input[plain] ?? {};
  const settable = Object.fromEntries(Object.entries(input).filter(([key]) => !readOnly.has(`${plain}.${key}`)));
  return body(types, settable, types.output[plain] ?? {});
}

function typeOf(types, name, shape) {
  const {scalar, map, many, struct: of} = shape;
  if (of) {
    const fields = Object.entries(types.output[of] ?? types.input[of] ?? {}).map(([key, member]) => {
      const inner = hclName(key, member.type);
      return `${inner}=${typeOf(types, inner, parse(member.type))}`;
    });
    const object = `object({${fields.sort().join(',')}})`;
    return many || wrapped.has(name) ? `${sets.has(name) ? 'set' : 'list'}(${object})` : object;
  }
  if (map) return `map(${scalar})`;
  if (many) return `${sets.has(name) ? 'set' : 'list'}(${scalar})`;
  return scalar;
}

// parse reads a type once pulumi's wrappers are off: string, Foo[], {[key: string]: string}.
function parse(type) {
  const many = type.endsWith('[]');
  const map = type.startsWith('{');
  const word = map ? type.match(/: (\w+);?\s*\}/)[1] : type.replace('[]', '').replace(/^(inputs|outputs)\./, '');
  const scalar = {string: 'string', number: 'number', boolean: 'bool'}[word];
  return scalar ? {scalar, many, map} : {struct: word, many, map};
}

function interfaces(text) {
  const out = {};
  for (const [, name, inner] of text.matchAll(/^export interface (\w+)[^{]*\{\n([\s\S]*?)^\}/gm)) out[name] = members(inner);
  return out;
}

function members(text) {
  const out = {};
  const plain = text.replace(/\/\*\*[\s\S]*?\*\//g, '');
  for (const [, name, optional, type] of plain.matchAll(/^ {4}(?:readonly )?(\w+)(\??): ((?:[^;{]|\{[^}]*\})+);/gm)) {
    out[name] = {required: optional === '', type: unwrap(type)};
  }
  return out;
}

function unwrap(type) {
  let t = type.replace(/ \| undefined/g, '').replace(/\s+/g, ' ').trim();
  for (let last = ''; last !== t;) {
    last = t;
    t = t.replace(/pulumi\.(?:Input|Output)<([^<>]*)>/g, '$1');
  }
  return t;
}

const hclName = (key, type) => {
  const name = key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
  return type.endsWith('[]') && name in singular ? singular[name] : name;
};
