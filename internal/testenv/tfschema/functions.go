package tfschema

import (
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions are those of the engine: as they are where their library has them,
// otherwise with their types alone, for a result that is unknown. try and can are not
// here: they take what would be an error elsewhere.
var functions = map[string]function.Function{
	"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
	"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc,
	"signum": stdlib.SignumFunc,

	"chomp": stdlib.ChompFunc, "format": stdlib.FormatFunc, "formatlist": stdlib.FormatListFunc, "indent": stdlib.IndentFunc,
	"join": stdlib.JoinFunc, "lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc,
	"split": stdlib.SplitFunc, "strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc,
	"trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc,
	"trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,

	"chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc, "coalescelist": stdlib.CoalesceListFunc,
	"compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc,
	"element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc, "keys": stdlib.KeysFunc, "lookup": stdlib.LookupFunc,
	"merge": stdlib.MergeFunc, "range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc,
	"setintersection": stdlib.SetIntersectionFunc, "setproduct": stdlib.SetProductFunc, "setsubtract": stdlib.SetSubtractFunc,
	"setunion": stdlib.SetUnionFunc, "slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc,
	"zipmap": stdlib.ZipmapFunc,

	"csvdecode": stdlib.CSVDecodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
	"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc,

	"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": stdlib.MakeToFunc(cty.Number), "tostring": stdlib.MakeToFunc(cty.String),
	"tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), "tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
	"toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),

	"replace":    typed(cty.String, cty.String, cty.String, cty.String), // also takes /patterns/
	"startswith": typed(cty.Bool, cty.String, cty.String), "endswith": typed(cty.Bool, cty.String, cty.String),
	"strcontains": typed(cty.Bool, cty.String, cty.String), "templatestring": typed(cty.String, cty.String, cty.DynamicPseudoType),

	"alltrue": typed(cty.Bool, cty.List(cty.Bool)), "anytrue": typed(cty.Bool, cty.List(cty.Bool)),
	"sum":   typed(cty.Number, cty.DynamicPseudoType),
	"index": typed(cty.Number, cty.DynamicPseudoType, cty.DynamicPseudoType), "length": length,
	"matchkeys": typed(cty.DynamicPseudoType, cty.DynamicPseudoType, cty.DynamicPseudoType, cty.DynamicPseudoType),
	"one":       one, "transpose": typed(cty.Map(cty.List(cty.String)), cty.Map(cty.List(cty.String))),

	"base64decode": typed(cty.String, cty.String), "base64encode": typed(cty.String, cty.String),
	"base64gzip": typed(cty.String, cty.String), "urlencode": typed(cty.String, cty.String),
	"yamldecode": typed(cty.DynamicPseudoType, cty.String), "yamlencode": typed(cty.String, cty.DynamicPseudoType),

	"abspath": typed(cty.String, cty.String), "basename": typed(cty.String, cty.String), "dirname": typed(cty.String, cty.String),
	"file": typed(cty.String, cty.String), "filebase64": typed(cty.String, cty.String), "fileexists": typed(cty.Bool, cty.String),
	"fileset": typed(cty.Set(cty.String), cty.String, cty.String), "pathexpand": typed(cty.String, cty.String),
	"templatefile": typed(cty.String, cty.String, cty.DynamicPseudoType),

	"plantimestamp": typed(cty.String), "timestamp": typed(cty.String), "timecmp": typed(cty.Number, cty.String, cty.String),

	"base64sha256": typed(cty.String, cty.String), "base64sha512": typed(cty.String, cty.String), "bcrypt": typed(cty.String, cty.String),
	"filemd5": typed(cty.String, cty.String), "filesha1": typed(cty.String, cty.String), "filesha256": typed(cty.String, cty.String),
	"md5": typed(cty.String, cty.String), "sha1": typed(cty.String, cty.String), "sha256": typed(cty.String, cty.String),
	"sha512": typed(cty.String, cty.String), "uuid": typed(cty.String), "uuidv5": typed(cty.String, cty.String, cty.String),

	"cidrhost": typed(cty.String, cty.String, cty.Number), "cidrnetmask": typed(cty.String, cty.String),
	"cidrsubnet": typed(cty.String, cty.String, cty.Number, cty.Number), "cidrsubnets": cidrsubnets,

	"issensitive": typed(cty.Bool, cty.DynamicPseudoType), "nonsensitive": same, "sensitive": same,
}

// typed is a function whose result is always unknown.
func typed(result cty.Type, params ...cty.Type) function.Function {
	spec := &function.Spec{Type: function.StaticReturnType(result), Impl: unknown}
	for _, typ := range params {
		spec.Params = append(spec.Params, parameter(typ))
	}
	return function.New(spec)
}

func parameter(typ cty.Type) function.Parameter {
	return function.Parameter{Name: "value", Type: typ, AllowUnknown: true, AllowDynamicType: true, AllowNull: true}
}

func unknown(_ []cty.Value, result cty.Type) (cty.Value, error) { return cty.UnknownVal(result), nil }

var cidrsubnets = function.New(&function.Spec{
	Params:   []function.Parameter{parameter(cty.String)},
	VarParam: &function.Parameter{Name: "newbits", Type: cty.Number, AllowUnknown: true},
	Type:     function.StaticReturnType(cty.List(cty.String)),
	Impl:     unknown,
})

var same = function.New(&function.Spec{
	Params: []function.Parameter{parameter(cty.DynamicPseudoType)},
	Type:   func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
	Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0], nil },
})

// length is of a string, too.
var length = function.New(&function.Spec{
	Params: []function.Parameter{parameter(cty.DynamicPseudoType)},
	Type: func(args []cty.Value) (cty.Type, error) {
		typ := args[0].Type()
		if typ == cty.DynamicPseudoType || typ == cty.String || typ.IsCollectionType() || typ.IsTupleType() || typ.IsObjectType() {
			return cty.Number, nil
		}
		return cty.NilType, function.NewArgErrorf(0, "a string, a list, a set, a map or an object has a length")
	},
	Impl: unknown,
})

var one = function.New(&function.Spec{
	Params: []function.Parameter{parameter(cty.DynamicPseudoType)},
	Type: func(args []cty.Value) (cty.Type, error) {
		typ := args[0].Type()
		switch {
		case typ.IsListType(), typ.IsSetType():
			return typ.ElementType(), nil
		case typ == cty.DynamicPseudoType, typ.IsTupleType() && typ.Length() == 0:
			return cty.DynamicPseudoType, nil
		case typ.IsTupleType() && typ.Length() == 1:
			return typ.TupleElementType(0), nil
		}
		return cty.NilType, function.NewArgErrorf(0, "takes a list, a set or a tuple of at most one element")
	},
	Impl: unknown,
})
